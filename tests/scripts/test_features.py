import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from scripts import features, verify_features
from tests.data.features.sample_features import write_npz, write_pth
from tests.data.vqa.official_files import make_question, real_folder, write_questions
from tests.small_models import run_here
from tests.small_runs import ROOT


def run(main, *words):
    """What a command prints that ends well."""
    code, printed, error = run_here(main, *words, quiet=[])
    assert code == 0, error
    return printed


def test_convert_then_verify_then_a_damaged_store_ends_with_one_sentence(tmp_path):
    write_pth(tmp_path / "pth", 3)
    output = tmp_path / "out" / "a.h5"
    printed = run(features.main, f"source={tmp_path}/pth", f"output={output}", "backbone=X-101")
    assert "3 images (3 copied now)" in printed
    entries = [make_question(n, image_id=n) for n in (1, 11, 21)]
    questions = write_questions(tmp_path / "q.json", entries)
    printed = run(verify_features.main, f"store={output}", f"questions={questions}")
    assert "is valid" in printed
    assert "backbone  X-101, resize 600/1000, 4 features" in printed
    assert "questions 3, each with its image" in printed
    os.truncate(output, output.stat().st_size - 1)
    code, _, error = run_here(verify_features.main, f"store={output}", quiet=[])
    assert code == 2
    assert error.count("\n") == 1
    assert error.startswith(f"error: {output} has ")


def test_a_folder_that_is_not_there_ends_with_exit_code_2(tmp_path):
    source = tmp_path / "pth"
    words = [f"source={source}", f"output={tmp_path / 'a.h5'}"]
    code, _, error = run_here(features.main, *words, quiet=[])
    assert code == 2
    assert (
        error == f"error: {source} is not a folder; expected one of <image_id>.pth or .npz files\n"
    )
    assert list(tmp_path.iterdir()) == []


def test_a_foreign_npz_ends_with_one_sentence_and_a_repaired_folder_is_converted(tmp_path):
    arrays = write_npz(tmp_path / "npz", {3: 4, 9: 5}, name="{}.npz")[9]
    np.savez(tmp_path / "npz" / "9.npz", bbox=arrays["bbox"])
    words = [f"source={tmp_path / 'npz'}", f"output={tmp_path / 'a.h5'}", "backbone=detector"]
    code, _, error = run_here(features.main, *words, quiet=[])
    said = [line for line in error.splitlines() if line.startswith("error: ")]
    assert code == 2
    assert said == [
        f"error: {tmp_path / 'npz' / '9.npz'} has no 'x'; a file of regions has x and bbox"
    ]
    assert list(tmp_path.iterdir()) == [tmp_path / "npz"]
    np.savez(tmp_path / "npz" / "9.npz", **arrays)
    printed = run(features.main, *words)
    assert "2 images (2 copied now), 9 regions of 6 features" in printed
    assert "detector, 6 features per region" in run(verify_features.main, f"store={tmp_path}/a.h5")


SLOW = """
import os, time
import data.features.from_pth as convert
load, count = convert.load_tensor, 0
def slow(path):
    global count
    count += 1
    if count > 12 + 5:  # the scan of twelve, then five copies
        open("reached", "w").close()
        while not os.path.exists("interrupted"):
            time.sleep(0.01)
        time.sleep(2)  # the signal is seen before the rest is copied
    return load(path)
convert.load_tensor = slow
from scripts.features import main
main()
"""


def test_an_interrupted_conversion_shows_no_traceback_and_goes_on(tmp_path):
    write_pth(tmp_path / "pth", 12)
    words = [f"source={tmp_path / 'pth'}", f"output={tmp_path / 'a.h5'}", "num_threads=2"]
    child = subprocess.Popen(
        [sys.executable, "-c", SLOW, *words],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 600
    while not (tmp_path / "reached").exists():
        assert time.monotonic() < deadline
        assert child.poll() is None
        time.sleep(0.02)
    child.send_signal(signal.SIGINT)
    (tmp_path / "interrupted").touch()
    _, error = child.communicate(timeout=600)
    assert child.returncode == 130
    assert "Traceback" not in error
    assert error.endswith("interrupted\n")
    copied = re.search(r"\((\d+) copied now\)", run(features.main, *words))
    assert 0 < int(copied[1]) < 12


@pytest.mark.real
def test_a_real_question_file_finds_all_its_images(tmp_path):
    folder, output = real_folder(), tmp_path / "a.h5"
    source = folder / "features" / "val2014"
    run(features.main, f"source={source}", f"output={output}", "resize=[384,640]")
    questions = folder / "v2_OpenEnded_mscoco_val2014_questions.json"
    printed = run(verify_features.main, f"store={output}", f"questions={questions}")
    assert "questions 255, each with its image" in printed
