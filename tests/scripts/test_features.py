import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest

from tests.data.features.sample_features import write_pth
from tests.data.vqa.official_files import real_folder
from tests.small_runs import ROOT


def run(*words):
    return subprocess.run(
        [sys.executable, "-m", *words], capture_output=True, text=True, check=False, timeout=180
    )


def test_convert_then_verify_then_a_damaged_store_ends_with_one_sentence(tmp_path):
    write_pth(tmp_path / "pth", 3)
    output = tmp_path / "out" / "a.h5"
    made = run(
        "scripts.features", f"source={tmp_path / 'pth'}", f"output={output}", "backbone=X-101"
    )
    assert made.returncode == 0, made.stderr
    assert "3 images (3 copied now)" in made.stdout
    questions = tmp_path / "q.json"
    entries = [{"question_id": n, "image_id": n, "question": "what?"} for n in (1, 11, 21)]
    questions.write_text(json.dumps({"data_subtype": "val2014", "questions": entries}))
    verified = run("scripts.verify_features", f"store={output}", f"questions={questions}")
    assert verified.returncode == 0, verified.stderr
    assert "is valid" in verified.stdout
    assert "backbone  X-101, resize 600/1000, 4 features" in verified.stdout
    assert "questions 3, each with its image" in verified.stdout
    os.truncate(output, output.stat().st_size - 1)
    damaged = run("scripts.verify_features", f"store={output}")
    assert damaged.returncode == 2
    assert damaged.stderr.count("\n") == 1
    assert damaged.stderr.startswith(f"error: {output} has ")


def test_a_folder_that_is_not_there_ends_with_exit_code_2(tmp_path):
    done = run("scripts.features", f"source={tmp_path / 'pth'}", f"output={tmp_path / 'a.h5'}")
    assert done.returncode == 2
    assert (
        done.stderr
        == f"error: {tmp_path / 'pth'} is not a folder; expected one of <image_id>.pth files\n"
    )
    assert list(tmp_path.iterdir()) == []


SLOW = """
import time
import data.features.from_pth as convert
load, count = convert.load_tensor, 0
def slow(path):
    global count
    count += 1
    if count > 12 + 5:  # the scan of twelve, then five copies
        open("reached", "w").close()
        time.sleep(2)
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
    deadline = time.monotonic() + 120
    while not (tmp_path / "reached").exists():
        assert time.monotonic() < deadline
        assert child.poll() is None
        time.sleep(0.02)
    child.send_signal(signal.SIGINT)
    _, error = child.communicate(timeout=30)
    assert child.returncode == 130
    assert "Traceback" not in error
    assert error.endswith("interrupted\n")
    again = run("scripts.features", *words)
    assert again.returncode == 0, again.stderr
    copied = int(re.search(r"\((\d+) copied now\)", again.stdout)[1])
    assert 0 < copied < 12


@pytest.mark.real
def test_a_real_question_file_finds_all_its_images(tmp_path):
    folder = real_folder()
    made = run(
        "scripts.features",
        f"source={folder / 'features' / 'val2014'}",
        f"output={tmp_path / 'a.h5'}",
        "resize=[384,640]",
    )
    assert made.returncode == 0, made.stderr
    questions = folder / "v2_OpenEnded_mscoco_val2014_questions.json"
    verified = run(
        "scripts.verify_features", f"store={tmp_path / 'a.h5'}", f"questions={questions}"
    )
    assert verified.returncode == 0, verified.stderr
    assert "questions 255, each with its image" in verified.stdout
