import json
import os
import subprocess
import sys

import pytest

from tests.data.official_files import real_folder
from tests.data.sample_features import write_pth


def run(*words):
    return subprocess.run(
        [sys.executable, "-m", *words], capture_output=True, text=True, check=False, timeout=60
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
    sound = run("scripts.verify_features", f"store={output}", f"questions={questions}")
    assert sound.returncode == 0, sound.stderr
    assert "is sound" in sound.stdout
    assert "backbone  X-101, resize 600/1000, 4 features" in sound.stdout
    assert "questions 3, each with its image" in sound.stdout
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
    sound = run("scripts.verify_features", f"store={tmp_path / 'a.h5'}", f"questions={questions}")
    assert sound.returncode == 0, sound.stderr
    assert "questions 255, each with its image" in sound.stdout
