"""The example and the commands in the README work."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_example_runs_and_finds_both_means():
    (program,) = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert "K* = 2" in done.stdout
    assert "[0.3, 0.2]" in done.stdout
    assert "[0.7, 0.8]" in done.stdout


def test_every_command_in_it_is_a_target():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    shown = set(re.findall(r"(?:^|`)make ([a-z-]+)", README, flags=re.MULTILINE))
    assert {"test", "data"} <= shown
    assert not [name for name in shown if not re.search(rf"^{name}:", makefile, re.MULTILINE)]


def test_make_help_lists_every_target():
    done = subprocess.run(
        ["make", "-s", "--no-print-directory", "help"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=True,
    )
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = re.findall(r"^([a-z-]+):", makefile, re.MULTILINE)
    listed = re.findall(r"^\s*(?:\x1b\[1m)?([a-z-]+)", done.stdout, flags=re.MULTILINE)
    assert sorted(targets) == sorted(listed)
