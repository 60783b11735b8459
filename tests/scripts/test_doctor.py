"""make doctor, through its entry point, on sound folders and on deliberately broken ones."""

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from data.splits import Folder
from data.store import FeatureStore
from data.store_writer import StoreWriter
from scripts.data import main as make_data
from scripts.doctor.__main__ import main
from scripts.doctor.gpus import Device, Machine, check_gpus, check_memory
from scripts.doctor.reading import is_cached, read_images
from scripts.doctor.storage import check_file_system, find_file_system, judge_rate
from scripts.doctor.surroundings import check_versions
from tests.small_models import listing, run_here


@pytest.fixture
def folder(small_dataset, tmp_path):
    """A sound data folder that a test may break."""
    shutil.copytree(small_dataset, tmp_path / "data", ignore=shutil.ignore_patterns("images"))
    return Folder(tmp_path / "data")


def examine(folder, *overrides, runs=None):
    """The exit code, and everything that was printed."""
    runs = runs or folder.root.parent / "runs"
    settings = ["data=custom", f"data.root={folder.root}", f"runs={runs}", "runtime.device=cpu"]
    code, printed, error = run_here(main, *settings, *overrides, quiet=[])
    assert error == ""
    return code, printed


def problems(printed):
    return [line[9:] for line in printed.splitlines() if line.startswith("PROBLEM")]


def warnings(printed):
    return [line[9:] for line in printed.splitlines() if line.startswith("WARNING")]


def change_json(path, change):
    content = json.loads(path.read_text(encoding="utf-8"))
    change(content)
    path.write_text(json.dumps(content), encoding="utf-8")


def test_a_sound_folder_has_no_problem_and_nothing_is_written(folder):
    before = listing(folder.root.parent)
    code, printed = examine(folder)
    assert code == 0
    assert problems(printed) == []
    assert "train: every question's image has features" in printed
    assert "val: every question's image has features" in printed
    assert "test: every question's image has features" in printed
    assert "train: 100.00% of the words in questions are known" in printed
    assert "of the questions have an answer in the list" in printed
    assert "patch" in printed
    assert "MB/s" in printed
    assert printed.splitlines()[-1].startswith("ready to train")
    assert listing(folder.root.parent) == before


def test_an_image_without_features_is_a_problem_with_its_id(folder):
    def move(content):
        for key in ("questions", "annotations"):
            for entry in content.get(key, [])[:1]:
                entry["image_id"] = 987654

    change_json(folder.questions("train"), move)
    change_json(folder.annotations("train"), move)
    code, printed = examine(folder)
    assert code == 1
    (problem,) = problems(printed)
    assert "lacks 1 of" in problem
    assert "987654" in problem


def test_a_truncated_store_is_a_problem(folder):
    store = folder.store("val")
    os.truncate(store, store.stat().st_size - 1000)
    code, printed = examine(folder)
    assert code == 1
    (problem,) = problems(printed)
    assert "truncated" in problem
    assert str(store) in problem


def test_changed_rows_are_found_by_their_checksums(folder):
    with FeatureStore(folder.store("train")) as store:
        place = store.header.data_offset + 1000
    with open(folder.store("train"), "r+b") as file:
        file.seek(place)
        file.write(b"\x01\x02\x03\x04")
    code, printed = examine(folder)
    assert code == 1
    (problem,) = problems(printed)
    assert "1 of the images that were read do not match their checksums" in problem


@pytest.mark.parametrize(
    ("path", "message"),
    [
        (lambda folder: folder.annotations("train"), "annotations.json does not exist"),
        (lambda folder: folder.questions("val"), "questions.json does not exist"),
        (lambda folder: folder.store("train"), "there is no feature store"),
    ],
)
def test_a_missing_file_is_a_problem_that_names_it(folder, path, message):
    path(folder).unlink()
    code, printed = examine(folder)
    assert code == 1
    assert any(message in problem and path(folder).name in problem for problem in problems(printed))
    assert "→" in printed


def test_annotations_of_other_questions_are_a_problem(folder):
    change_json(folder.annotations("val"), lambda content: content["annotations"].pop())
    code, printed = examine(folder)
    assert code == 1
    assert "1 questions have no annotation" in problems(printed)[0]


def test_stores_of_two_backbones_are_a_problem(folder):
    with FeatureStore(folder.store("val")) as store:
        sizes = {int(n): store.size(int(n)) for n in store.image_ids}
        rows = {n: store.rows(n).copy() for n in sizes}
        width = store.num_features
    folder.store("val").unlink()
    with StoreWriter(folder.store("val"), sizes, width, source="test", backbone="R-50") as writer:
        for image_id, each in rows.items():
            writer.write(image_id, each)
    code, printed = examine(folder)
    assert code == 1
    assert "backbone R-50" in problems(printed)[0]


def test_words_of_other_questions_are_a_warning_and_damaged_ones_a_problem(folder):
    def rename(content):
        for number, entry in enumerate(content["questions"]):
            entry["question"] = f"zzz{number} yyy{number} xxx{number}?"

    assert run_here(make_data, "data=custom", f"data.root={folder.root}", quiet=[])[0] == 0
    change_json(folder.questions("train"), rename)
    code, printed = examine(folder)
    assert code == 0
    assert any("0.00% of the words" in each for each in warnings(printed))
    folder.vocabulary.write_text("{}")
    code, printed = examine(folder)
    assert code == 1
    assert "vocabulary.json" in problems(printed)[0]


def test_answers_too_rare_for_the_list_are_a_problem_before_it_is_built(folder):
    folder.answers.unlink(missing_ok=True)
    code, printed = examine(folder, "data.answers_more_than=100000")
    assert code == 1
    assert "occurs more than 100000 times" in problems(printed)[0]


def test_a_folder_of_runs_that_cannot_be_written_is_a_problem(folder, tmp_path):
    (tmp_path / "file").write_text("")
    code, printed = examine(folder, runs=tmp_path / "file" / "runs")
    assert code == 1
    assert "is a file, not a folder" in problems(printed)[0]
    kept = tmp_path / "kept"
    kept.mkdir(mode=0o555)
    place = kept if os.geteuid() else Path("/proc")  # nothing else is read-only to root
    code, printed = examine(folder, runs=place / "runs")
    assert code == 1
    assert f"{place} cannot hold runs" in problems(printed)[0]


def test_too_little_room_for_the_checkpoints_is_a_problem(folder):
    code, printed = examine(folder, "runtime.keep=100000000")
    assert code == 1
    assert "keeping 100000002 checkpoints needs" in problems(printed)[0]


def test_staging_needs_a_folder_and_counts_what_is_still_to_be_copied(folder, tmp_path):
    code, printed = examine(folder, f"runtime.stage_to={tmp_path}/scratch")
    assert code == 0
    assert "of stores still to be copied" in printed
    (tmp_path / "file").write_text("")
    code, printed = examine(folder, f"runtime.stage_to={tmp_path}/file")
    assert code == 1
    assert "is a file, not a folder" in problems(printed)[0]


def test_starting_points_that_are_not_there_are_problems(folder, multimodal_run):
    code, printed = examine(folder, "glove=nowhere.txt", "init_from=nowhere.pt")
    assert code == 1
    assert ["nowhere.txt" in problems(printed)[0], "nowhere.pt" in problems(printed)[1]] == [
        True
    ] * 2
    code, printed = examine(folder, f"init_from={multimodal_run}/best.pt")
    assert code == 0
    assert "is sound and has the words of this data" in printed


def test_before_any_data_it_says_how_to_get_some(tmp_path):
    place = [f"runs={tmp_path}/runs", "runtime.device=cpu"]
    code, printed, _ = run_here(main, f"data.root={tmp_path}/none", *place, quiet=[])
    assert code == 0
    assert "run make data" in printed
    root = f"data.root={tmp_path}/none"
    code, printed, _ = run_here(main, "experiment=paper_multimodal", root, *place, quiet=[])
    assert code == 1
    assert "run make data DATA=vqa_v2" in printed
    assert "need 2.8 GB" in printed
    assert list(tmp_path.iterdir()) == []


def test_vqa_v2_with_questions_alone_asks_for_features(folder):
    shutil.rmtree(folder.root / "features")
    code, printed = examine(folder, "data=vqa_v2", f"data.root={folder.root}")
    assert code == 1
    assert sum("there is no feature store" in each for each in problems(printed)) == 2
    assert any("test2015.h5" in each for each in warnings(printed))


def test_gpus_that_are_not_there_are_a_problem_only_when_asked_for(folder):
    many = 1000
    code, printed = examine(folder, "runtime.device=null", f"gpus={many}")
    assert code == 1
    assert f"{many} GPUs" in problems(printed)[0]
    code, printed = examine(folder, "runtime.device=null")
    assert code == 0
    there = torch.cuda.is_available()
    assert ("GPU 0: " in printed) == there
    assert "a step takes about 0.0 GB of a GPU" in printed
    assert any("there is no GPU here" in each for each in warnings(printed)) != there


@pytest.mark.parametrize(
    "override",
    ["train_split=nope", "gpus=0", "data.root=", "runtime.reader=x", "runtime.precision=int8"],
)
def test_a_mistake_ends_in_one_sentence_with_code_2(override, folder):
    settings = ["data=custom", f"data.root={folder.root}", override]
    code, printed, error = run_here(main, *settings, quiet=[])
    assert (code, printed) == (2, "")
    assert error.count("\n") == 1


A100 = Device("A100", 40_000_000_000, (8, 0), True)
V100 = Device("V100", 16_000_000_000, (7, 0), False)
DRIVER = "NVRM version: 550"


def levels(machine, wanted=1, device=None):
    return [finding.level for finding in check_gpus(machine, wanted, device)]


def test_gpus_are_judged_by_number_architecture_and_driver():
    sound = Machine((A100, A100), DRIVER, "13.0", ("sm_75", "sm_80", "sm_90"), "2.28")
    assert levels(sound, 2) == ["OK"] * 3
    assert levels(sound, 4).count("PROBLEM") == 1
    # newer cards run the kernels of their own generation, other generations have none
    later = Device("A6000", 48_000_000_000, (8, 6), True)
    assert levels(Machine((later,), DRIVER, "13.0", ("sm_80",), "2")) == ["OK", "OK"]
    assert "PROBLEM" in levels(Machine((V100,), DRIVER, "13.0", ("sm_75", "sm_80"), "2"))
    assert levels(Machine((V100,), DRIVER, "12.6", ("sm_70",), "2")) == ["OK", "OK"]
    assert levels(Machine((), DRIVER, "", (), "")) == ["PROBLEM"]  # torch without CUDA
    assert levels(Machine((), DRIVER, "13.0", (), "")) == ["PROBLEM"]  # a driver too old
    assert levels(Machine((), "", "13.0", (), "")) == ["WARNING"]


def test_a_step_that_does_not_fit_the_smallest_gpu_is_a_problem():
    machine = Machine((A100, V100), DRIVER, "12.6", ("sm_70", "sm_80"), "2")
    assert [each.level for each in check_memory(machine, 14_000_000_000)] == ["OK"]
    (finding,) = check_memory(machine, 15_000_000_000)
    assert finding.level == "PROBLEM"
    assert "the smallest has 16.0 GB" in finding.text
    assert "runtime.micro_batches" in finding.advice
    assert [each.level for each in check_memory(Machine((), "", "", (), ""), 10**15)] == ["OK"]


def test_versions_are_compared_with_the_pinned_ones(tmp_path):
    pinned = tmp_path / "constraints.txt"
    pinned.write_text(f"# a comment\ntorch=={torch.__version__.split('+')[0]}\nnot-there==1\n")
    (finding,) = check_versions(pinned)
    assert finding.level == "OK"
    pinned.write_text("torch==0.0.1\n")
    (finding,) = check_versions(pinned)
    assert finding.level == "WARNING"
    assert "instead of 0.0.1" in finding.text
    (finding,) = check_versions(tmp_path / "none")
    assert finding.level == "WARNING"


def test_a_memory_map_over_a_network_is_a_warning(folder, tmp_path):
    mounts = tmp_path / "mounts"
    mounts.write_text(f"disk / ext4 rw 0 0\nserver {folder.root.parent} nfs4 rw 0 0\n")
    with FeatureStore(folder.store("val")) as store:
        assert find_file_system(store.path, mounts) == "nfs4"
        assert [each.level for each in check_file_system(store, mounts)] == ["WARNING"]
    with FeatureStore(folder.store("val"), "pread") as store:
        assert [each.level for each in check_file_system(store, mounts)] == ["OK"]
    mounts.write_text("disk / ext4 rw 0 0\n")
    with FeatureStore(folder.store("val")) as store:
        assert list(check_file_system(store, mounts)) == []


def test_a_slow_disk_is_a_warning_in_hours(folder):
    with FeatureStore(folder.store("val")) as store:
        image = store.header.data_bytes / len(store)
        assert judge_rate(store, rate=image, num_questions=3600).level == "OK"
        slow = judge_rate(store, rate=image, num_questions=3 * 3600)
    assert slow.level == "WARNING"
    assert "3.00 h an epoch" in slow.text


@pytest.mark.parametrize("reader", ["mmap", "pread"])
def test_a_sample_is_read_with_the_trainings_reader_and_its_damage_named(folder, reader):
    with FeatureStore(folder.store("val"), reader) as store:
        rate, damaged = read_images(store, range(len(store)), num_threads=2)
        assert rate > 0
        assert damaged == []
        assert is_cached(store, 0) in (True, None)  # it was read a moment ago
        store.checksums = np.array(store.checksums)
        store.checksums[2] += 1
        assert read_images(store, range(len(store)), 1)[1] == [int(store.image_ids[2])]
