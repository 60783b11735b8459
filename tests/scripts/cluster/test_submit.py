"""make train LAUNCHER=slurm: the batch script says what the site's settings say."""

import subprocess
import sys

import pytest

from scripts.cluster import submit
from scripts.cluster.slurm import list_options
from tests.scripts.mistakes import assert_one_sentence


def compose(*words):
    (composed,) = submit.main.compose(list(words))
    return composed.launcher


def test_every_setting_of_a_site_is_an_option_of_sbatch():
    launcher = compose(
        "launcher.partition=a100", "launcher.account=vision", "launcher.qos=long",
        "launcher.minutes=90", "launcher.gres=gpu:a100", "launcher.gpus=4", "launcher.nodes=2",
        "launcher.cpus=3", "launcher.memory_gb=64", "launcher.signal_seconds=600",
        "launcher.more=['constraint=ib','--exclusive']",
    )  # fmt: skip
    assert list_options(launcher) == {
        "partition": "a100", "account": "vision", "qos": "long", "time": 90,
        "gres": "gpu:a100:4", "cpus-per-task": 12, "mem": "64G", "nodes": 2, "ntasks-per-node": 1,
        "signal": "USR1@600", "requeue": True, "open-mode": "append", "constraint": "ib",
        "exclusive": True,
    }  # fmt: skip


def test_a_cluster_of_cpus_is_asked_for_no_gpu():
    assert "gres" not in list_options(compose("launcher.gres=null"))


def test_the_script_is_valid_shell_whatever_the_settings_are(tmp_path):
    launcher = compose("launcher.setup=['module load cuda']", "launcher.more=['comment=two words']")
    words = ["data.root='/a b/c'", "attention.lam={linear:[0,2]}"]
    script = submit.write_script(launcher, words, tmp_path, "x")
    assert "\nmodule load cuda\n" in script
    assert 'export SRUN_CPUS_PER_TASK="$SLURM_CPUS_PER_TASK"\n' in script
    assert "#SBATCH --requeue\n" in script
    assert "#SBATCH --comment='two words'\n" in script
    checked = subprocess.run(["bash", "-n"], input=script, text=True, capture_output=True)
    assert (checked.returncode, checked.stderr) == (0, "")
    command = script.split("exec srun")[1]
    shown = subprocess.run(
        ["bash", "-c", "srun() { shift 5; printf '%s\\n' \"$@\"; }; srun" + command],
        capture_output=True,
        text=True,
    )
    assert shown.stdout.splitlines()[-4:] == [
        sys.executable, "--processes=1", "scripts.train", words[0], words[1],
    ][-4:]  # fmt: skip


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["launcher.minute=3"], "did you mean 'launcher.minutes'?"),
        (["launcher.gpus=two"], "launcher.gpus must be a whole number"),
        (["launcher.signal_seconds=0"], "launcher.signal_seconds must be a whole number"),
        (
            ["launcher.minutes=5"],
            "launcher.signal_seconds=300 must be shorter than the time limit, launcher.minutes=5",
        ),
        (["launcher=local"], "submit needs a launcher of Slurm, not local"),
        (["optim.epoch=3"], "did you mean 'optim.epochs'?"),
        ([], "LAUNCHER=slurm needs a machine that has sbatch"),
    ],
)
def test_a_mistake_is_one_sentence_and_nothing_is_written(tmp_path, monkeypatch, words, sentence):
    monkeypatch.setenv("PATH", str(tmp_path))  # a machine without Slurm
    assert_one_sentence(submit.main, [*words, f"runs={tmp_path / 'runs'}"], sentence)
    assert not (tmp_path / "runs").exists()
