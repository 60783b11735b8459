"""make doctor, through its entry point, on valid folders and on deliberately broken ones."""

import os
import shutil
import warnings
from dataclasses import replace
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import attention
from attention.basis import RadialBasis
from data.features.reader import FeatureStore
from data.features.writer import StoreWriter
from data.io.atomic_files import read_json, write_json
from data.vqa.data_folder import DataFolder
from data.vqa.layout import LAYOUTS, Layout, register_layout
from mcan.cost.step_cost import Cost
from scripts.data import main as make_data
from scripts.doctor import __main__ as doctor
from scripts.doctor import gpus
from scripts.doctor.__main__ import main
from scripts.doctor.environment import check_versions
from scripts.doctor.gpus import Machine, check_gpus, check_launches, check_memory
from scripts.doctor.grids import check_fit, is_fitted
from scripts.doctor.read_speed import check_rate, is_cached, read_images
from scripts.doctor.storage import check_file_system, find_file_system
from tests.data.vqa.official_files import make_annotation, make_question
from tests.mcan.runtime.stand_in_gpus import stand_in
from tests.small_models import listing, run_here


@pytest.fixture(autouse=True)
def _no_driver(monkeypatch, tmp_path):
    """A driver whose GPUs are hidden, as tests/conftest.py hides them, would be a problem."""
    monkeypatch.setattr(gpus, "DRIVER", tmp_path / "no_driver")


@pytest.fixture
def folder(small_dataset, tmp_path):
    """A valid data folder that a test may break."""
    shutil.copytree(small_dataset, tmp_path / "data", ignore=shutil.ignore_patterns("images"))
    return DataFolder(tmp_path / "data")


def examine(folder, *overrides):
    """The exit code, and everything that was printed."""
    runs = folder.root.parent / "runs"
    settings = ["data=custom", f"data.root={folder.root}", f"runs={runs}", "runtime.device=cpu"]
    code, printed, error = run_here(main, *settings, *overrides, quiet=[])
    assert error == ""
    return code, printed


def findings(printed, level):
    return [line[9:] for line in printed.splitlines() if line.startswith(level)]


def find_problems(folder, *overrides):
    """The problems, which the exit code must agree with."""
    code, printed = examine(folder, *overrides)
    problems = findings(printed, "PROBLEM")
    assert code == bool(problems)
    assert printed.count("→") >= len(problems)  # each with what to do
    return problems


def change_json(path, change):
    content = read_json(path)
    change(content)
    write_json(path, content)


def test_a_valid_folder_has_no_problem_and_nothing_is_written(folder):
    before = listing(folder.root.parent)
    code, printed = examine(folder)
    assert code == 0
    assert findings(printed, "PROBLEM") == []
    for split in ("train", "val", "test"):
        assert f"{split}: every question's image has features" in printed
    assert "train: 100.00% of the words in questions are known" in printed
    assert "of the questions have an answer in the list" in printed
    assert "patch" in printed
    assert "MB/s" in printed
    assert "with 0 loading threads each" in printed  # as in training: the images are small
    assert printed.splitlines()[-1].startswith("ready to train")
    assert listing(folder.root.parent) == before


def move_an_image(folder):
    def move(content):
        for key in ("questions", "annotations"):
            for entry in content.get(key, [])[:1]:
                entry["image_id"] = 987654

    change_json(folder.questions("train"), move)
    change_json(folder.annotations("train"), move)


def truncate_a_store(folder):
    os.truncate(folder.store("val"), folder.store("val").stat().st_size - 1000)


def overwrite_rows(folder):
    with FeatureStore(folder.store("train")) as store, open(store.path, "r+b") as file:
        file.seek(store.header.data_offset + 1000)
        file.write(b"\x01\x02\x03\x04")


def drop_an_annotation(folder):
    change_json(folder.annotations("val"), lambda content: content["annotations"].pop())


def change_the_backbone(folder):
    with FeatureStore(folder.store("val")) as store:
        sizes = {int(n): store.size(int(n)) for n in store.image_ids}
        rows = {n: store.rows(n).copy() for n in sizes}
        width = store.num_features
    folder.store("val").unlink()
    with StoreWriter(folder.store("val"), sizes, width, source="test", backbone="R-50") as writer:
        for image_id, each in rows.items():
            writer.write(image_id, each)


@pytest.mark.parametrize(
    ("damage", "messages"),
    [
        (move_an_image, ["lacks 1 of", "987654"]),
        (truncate_a_store, ["truncated", "val2014.h5"]),
        (overwrite_rows, ["1 of the images that were read do not match their checksums"]),
        (drop_an_annotation, ["val2014_annotations.json: 1 questions have no annotation"]),
        (change_the_backbone, ["backbone R-50"]),
        (lambda f: f.annotations("train").unlink(), ["train2014_annotations.json does not exist"]),
        (lambda f: f.questions("val").unlink(), ["val2014_questions.json does not exist"]),
        (lambda f: f.store("train").unlink(), ["there is no feature store", "train2014.h5"]),
    ],
)
def test_damaged_data_is_one_problem_that_names_it(folder, damage, messages):
    damage(folder)
    (problem,) = find_problems(folder)
    assert all(message in problem for message in messages)


def test_where_the_images_are_there_features_need_only_extract(folder, small_dataset):
    folder.store("train").unlink()
    assert "put images into" in examine(folder)[1]
    shutil.copytree(small_dataset / "images", folder.root / "images")
    printed = examine(folder)[1]
    assert f"→ make extract IMAGES={folder.image_folder('train')} OUT=" in printed


def test_visual_genomes_questions_are_checked_where_they_are_trained_on(folder):
    (missing,) = find_problems(folder, "train_split=train+val+vg")
    assert "VG_questions.json does not exist" in missing
    image_id = read_json(folder.questions("train"))["questions"][0]["image_id"]
    asked = [make_question(1, image_id=image_id), make_question(2, image_id=987)]
    entries = [make_annotation(n["question_id"], ["no"], "no", n["image_id"]) for n in asked]
    write_json(folder.root / "VG_questions.json", {"questions": asked})
    write_json(folder.root / "VG_annotations.json", {"annotations": entries})
    (absent,) = find_problems(folder, "train_split=train+val+vg")
    assert "vg: 1 of its images have no features" in absent
    assert "987" in absent


def test_words_of_other_questions_are_a_warning_and_damaged_ones_a_problem(folder):
    def rename(content):
        for number, entry in enumerate(content["questions"]):
            entry["question"] = f"zzz{number} yyy{number} xxx{number}?"

    assert run_here(make_data, "data=custom", f"data.root={folder.root}", quiet=[])[0] == 0
    change_json(folder.questions("train"), rename)
    code, printed = examine(folder)
    assert code == 0
    assert any("0.00% of the words" in each for each in findings(printed, "WARNING"))
    folder.vocabulary.write_text("{}")
    assert "vocabulary.json" in find_problems(folder)[0]


def test_a_folder_of_runs_that_cannot_be_written_is_a_problem(folder, tmp_path):
    kept = tmp_path / "kept"
    kept.mkdir(mode=0o555)
    place = kept if os.geteuid() else Path("/proc")  # nothing else is read-only to root
    assert f"{place} cannot hold runs" in find_problems(folder, f"runs={place}/runs")[0]


@pytest.mark.parametrize(
    "problems",  # by the setting that each comes from, in the order of the checks
    [
        {
            "data.min_answer_count=100000": "occurs 100000 times",
            "glove=nowhere.txt": "no word vectors nowhere.txt",
            "runs={file}/runs": "{file} is a file, not a folder",
        },
        {
            "glove={file}": "file is empty",
            "runtime.keep=100000000": "keeping 100000002 checkpoints needs",
            "runtime.stage_to={file}": "{file} is a file, not a folder",
        },
        {"glove={vectors}": "vectors.txt has vectors of 2 numbers and the model takes"},
        {"gpus=1000": "1000 GPUs", "init_from=nowhere.pt": "nowhere.pt"},  # which needs no vectors
    ],
)
def test_settings_that_training_would_fail_with_are_problems(folder, tmp_path, problems):
    places = {"file": tmp_path / "file", "vectors": tmp_path / "vectors.txt"}
    places["file"].write_text("")
    places["vectors"].write_text("the 0.1 0.2\n")
    folder.answers.unlink(missing_ok=True)
    device = ["runtime.device=null"] if "gpus=1000" in problems else []
    found = find_problems(folder, *device, *[each.format(**places) for each in problems])
    for problem, message in zip(found, problems.values(), strict=True):
        assert message.format(**places) in problem


def test_a_checkpoint_and_a_folder_for_staging_that_fit_are_reported(
    folder, multimodal_run, tmp_path
):
    words = [f"init_from={multimodal_run}/best.pt", f"runtime.stage_to={tmp_path}/scratch"]
    code, printed = examine(folder, *words)
    assert code == 0
    assert "is valid and has the words of this data" in printed
    assert "of stores still to be copied" in printed


def test_the_advice_for_missing_word_vectors_says_which_file_is_downloaded(folder):
    _, printed = examine(folder, "glove=glove.6B.100d.txt")
    assert "glove=<file>, or glove=none; " in printed
    assert 'ARGS="data.glove=true" downloads glove.840B.300d.txt\n' in printed


def test_word_vectors_of_the_models_width_are_ok(folder, tmp_path):
    (tmp_path / "vectors.txt").write_text("the 0.1 0.2\nof 0.3 0.4\n")
    words = [f"glove={tmp_path / 'vectors.txt'}", "model.embedding=2"]
    code, printed = examine(folder, *words)
    assert code == 0
    assert "vectors.txt, 2 numbers each" in printed


@pytest.mark.parametrize("num_basis", [100, 49])
def test_grids_are_fitted_badly_where_the_library_warns_of_them(num_basis):
    variance = 0.00100001  # operators that nothing has computed before: each warns once
    basis = RadialBasis(num_basis, variance)
    for grid in product((2, 6, 9, 10, 14), (9, 10, 17)):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            basis.ridge_operator(attention.Grid.of([grid], device="cpu"))
        assert is_fitted(basis, grid) == (not caught), grid


def test_images_of_badly_fitted_grids_are_counted_for_continuous_heads(tmp_path):
    sizes = {1: (9, 17), 2: (9, 17), 3: (10, 17), 4: (6, 17)}
    with StoreWriter(tmp_path / "a.h5", sizes, 1, source="test", backbone="patch") as writer:
        for image_id, (height, width) in sizes.items():
            writer.write(image_id, np.ones((height * width, 1), np.float16))
    with FeatureStore(tmp_path / "a.h5") as store:
        (found,) = check_fit(attention.build("unimodal"), {"train": store})
        assert list(check_fit(attention.build("discrete"), {"train": store})) == []
    assert found.text.startswith("train: 3 of 4 images have grids")
    assert found.text.endswith("9×17 (2), 6×17 (1)")
    assert "resize" in found.advice


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
    assert sum("there is no feature store" in each for each in findings(printed, "PROBLEM")) == 2
    assert any("test2015.h5" in each for each in findings(printed, "WARNING"))


def test_without_a_gpu_a_run_that_does_not_ask_for_one_gets_a_warning(folder):
    code, printed = examine(folder, "runtime.device=null")
    assert code == 0
    there = torch.cuda.is_available()
    assert ("GPU 0: " in printed) == there
    assert "a step takes about 0.0 GB of a GPU" in printed
    assert any("there is no GPU here" in each for each in findings(printed, "WARNING")) != there


@pytest.mark.parametrize(
    "override",
    ["train_split=nope", "gpus=0", "data.root=", "runtime.reader=x", "runtime.precision=int8"],
)
def test_a_mistake_ends_in_one_sentence_with_code_2(override, folder):
    settings = ["data=custom", f"data.root={folder.root}", override]
    code, printed, error = run_here(main, *settings, quiet=[])
    assert (code, printed) == (2, "")
    assert error.count("\n") == 1


A100 = SimpleNamespace(name="A100", total_memory=40_000_000_000, major=8, minor=0)
V100 = SimpleNamespace(name="V100", total_memory=16_000_000_000, major=7, minor=0)
A6000 = SimpleNamespace(name="A6000", total_memory=48_000_000_000, major=8, minor=6)
DRIVER = "NVRM version: 550"
BF16, FP16 = torch.bfloat16, torch.float16


def levels(machine, wanted=1, device=None):
    return [finding.level for finding in check_gpus(machine, wanted, device)]


def test_gpus_are_checked_by_number_architecture_and_driver():
    two = Machine((A100, A100), (BF16, BF16), DRIVER, "13.0", ("sm_75", "sm_80", "sm_90"), "2.28")
    assert levels(two, 2) == ["OK"] * 3
    assert levels(two, 4).count("PROBLEM") == 1
    # newer cards run the kernels of their own generation, other generations have none
    assert levels(Machine((A6000,), (BF16,), DRIVER, "13.0", ("sm_80",), "2")) == ["OK", "OK"]
    assert "PROBLEM" in levels(Machine((V100,), (FP16,), DRIVER, "13.0", ("sm_75", "sm_80"), "2"))
    assert levels(Machine((V100,), (FP16,), DRIVER, "12.6", ("sm_70",), "2")) == ["OK", "OK"]
    assert levels(Machine((), (), DRIVER, "", (), "")) == ["PROBLEM"]  # torch without CUDA
    assert levels(Machine((), (), DRIVER, "13.0", (), "")) == ["PROBLEM"]  # a driver too old
    assert levels(Machine((), (), "", "13.0", (), "")) == ["WARNING"]


def test_a_step_that_does_not_fit_the_smallest_gpu_is_a_problem():
    machine = Machine((A100, V100), (BF16, FP16), DRIVER, "12.6", ("sm_70", "sm_80"), "2")
    assert check_memory(machine, 14_000_000_000).level == "OK"
    finding = check_memory(machine, 15_000_000_000)
    assert finding.level == "PROBLEM"
    assert "the smallest has 16.0 GB" in finding.text
    assert "runtime.micro_batches" in finding.advice
    assert check_memory(Machine((), (), "", "", (), ""), 10**15).level == "OK"


def test_compilation_is_advised_where_launches_take_longer_than_the_work():
    machine = Machine((A100, A100), (BF16, BF16), DRIVER, "13.0", ("sm_80",), "2")
    # of the paper's model: 64 questions on one GPU, and 8 of them on each of eight
    whole, share = Cost(6 * 10**12, 70 * 10**9, 2800, 0), Cost(75 * 10**10, 9 * 10**9, 2800, 0)
    assert list(check_launches(machine, whole, 64, BF16)) == []
    (finding,) = check_launches(machine, share, 8, BF16)
    assert finding.level == "WARNING"
    assert "a step of 8 questions per process" in finding.text
    assert "14.0 ms to launch its 2,800 kernels" in finding.text
    assert "ms on the A100 80 GB but takes" in finding.text
    assert "runtime.compile=true" in finding.advice
    (finding,) = check_launches(replace(machine, devices=(A6000,)), share, 8, BF16)
    assert "ms on the A6000 (not in make cost's table, so counted as A100 80 GB)" in finding.text


@pytest.mark.parametrize("compiled", [False, True])
def test_the_doctor_counts_a_runs_own_kernels(folder, monkeypatch, compiled):
    stand_in(monkeypatch, ["NVIDIA A100-SXM4-80GB"], [8])
    words = ["runtime.device=null", f"runtime.compile={compiled}", "optim.batch_size=6"]
    words += ["runtime.micro_batches=2"]
    monkeypatch.setattr(doctor, "check_compilation", lambda device: [])
    _, printed = examine(folder, *words)
    assert ("to launch its" in printed) == (not compiled)
    assert ("a step of 6 questions per process" in printed) == (not compiled)


def test_versions_are_compared_with_the_pinned_ones(tmp_path):
    pinned = tmp_path / "constraints.txt"
    pinned.write_text(f"# a comment\ntorch=={torch.__version__.split('+')[0]}\nnot-there==1\n")
    (tmp_path / "other").write_text("torch==0.0.1\n")
    for name, level, text in (
        ("constraints.txt", "OK", "all versions are those of constraints.txt"),
        ("other", "WARNING", "instead of 0.0.1"),
        ("none", "WARNING", "is not there"),
    ):
        (finding,) = check_versions(tmp_path / name)
        assert finding.level == level
        assert text in finding.text


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
        assert check_rate(store, rate=image, num_questions=3600).level == "OK"
        slow = check_rate(store, rate=image, num_questions=3 * 3600)
    assert slow.level == "WARNING"
    assert "3.00 h per epoch" in slow.text


@pytest.mark.parametrize("reader", ["mmap", "pread"])
def test_a_sample_is_read_with_the_runs_reader_and_its_damage_named(folder, reader):
    with FeatureStore(folder.store("val"), reader) as store:
        rate, damaged = read_images(store, range(len(store)), num_threads=2)
        assert rate > 0
        assert damaged == []
        assert is_cached(store, 0) in (True, None)  # it was read a moment ago
        store.checksums = np.array(store.checksums)
        store.checksums[2] += 1
        assert read_images(store, range(len(store)), 1)[1] == [int(store.image_ids[2])]


def test_a_layout_without_a_test_split_has_no_problem(folder, monkeypatch):
    monkeypatch.setattr(LAYOUTS, "values", dict(LAYOUTS.values))
    subtypes = {"train": ("train2014", "train2014"), "minival": ("val2014", "val2014")}
    register_layout("mine", Layout(subtypes=subtypes, annotated=("train", "minival")))
    words = ["data.layout=mine", "val_split=minival"]
    assert find_problems(folder, *words) == []
    code, _, error = run_here(main, "data=custom", f"data.root={folder.root}", *words[:1], quiet=[])
    assert (code, error.count("\n")) == (2, 1)
    assert "there is no split 'val'; choose from train, minival" in error
