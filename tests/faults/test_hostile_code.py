"""Files that try to execute code, as a pickle or in a checkpoint's config: it is never executed."""

import ast
import os
import pickle

import pytest
import torch

from mcan.checkpoint import KIND, load_checkpoint
from scripts import evaluate, train
from tests.small_models import copy_checkpoint, find_command, read_error, run_here
from tests.small_runs import ROOT, settings

PACKAGES = ("attention", "mcan", "data", "figures", "configs", "scripts")
UNSAFE = {
    ("", "eval"), ("", "exec"), ("", "compile"), ("", "__import__"),
    ("pickle", "load"), ("pickle", "loads"), ("pickle", "Unpickler"), ("yaml", "load"),
    ("yaml", "unsafe_load"), ("joblib", "load"), ("os", "system"), ("hydra.utils", "instantiate"),
    ("serialization", "add_safe_globals"), ("OmegaConf", "register_new_resolver"),
}  # fmt: skip


def list_calls():
    """(file, owner, name, call) of every call in the project."""
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                    yield path, ast.unparse(node.func.value), node.func.attr, node
                elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                    yield path, "", node.func.id, node


def test_every_torch_load_reads_only_weights_and_nothing_else_can_run_code():
    loads, wrong, imports = 0, [], set()
    for path, owner, name, call in list_calls():
        place = f"{path.relative_to(ROOT)}:{call.lineno}"
        options = {word.arg: ast.unparse(word.value) for word in call.keywords}
        if (owner, name) == ("torch", "load"):
            loads += 1
            if options.get("weights_only") != "True":
                wrong.append(place)
        elif options.get("allow_pickle", "False") != "False" or (owner, name) in UNSAFE:
            wrong.append(place)
        elif name == "import_module":
            imports.add(str(path.relative_to(ROOT)))
    assert loads >= 2
    assert not wrong
    # modules= and the launcher's command, both from the command line, never from a checkpoint
    assert imports == {"scripts/cli/parts.py", "scripts/cluster/launch.py"}


class Payload:
    """Creates a folder when it is unpickled."""

    def __init__(self, folder):
        self.folder = str(folder)

    def __reduce__(self):
        return os.mkdir, (self.folder,)


def test_the_payload_works(tmp_path):
    pickle.loads(pickle.dumps(Payload(tmp_path / "ran")))
    assert (tmp_path / "ran").is_dir()


def make_hostile(path, kind):
    """A file whose pickle creates the folder `ran` beside it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    payload = {"kind": KIND, "format": 1, "model": Payload(path.with_name("ran"))}
    if kind == "bare pickle":
        path.write_bytes(pickle.dumps(payload))
    else:
        torch.save(payload, path, _use_new_zipfile_serialization=kind == "archive")
    return path


ONE, LIST = "checkpoint={path}", "checkpoints=[{path}]"
TAKE_CHECKPOINTS = {
    **dict.fromkeys(("evaluate", "export", "select_lambda"), ONE),
    **dict.fromkeys(("human_attention", "figures", "gallery"), LIST),
    "ask": f"{ONE} image={{image}} question=what",
    "import_mcan": f"{ONE} output={{folder}}/out.pt",
    "extract": "images={images} output={folder}/out.h5 backbone=r50 weights={path}",
    "features": "source={folder} output={folder}/../out.h5",
}
INVALID = "is not a valid checkpoint"
REASONS = {"import_mcan": "would run posix.mkdir", "extract": "7.pth", "features": "7.pth"}


@pytest.mark.parametrize("kind", ["archive", "old file", "bare pickle"])
@pytest.mark.parametrize("name", TAKE_CHECKPOINTS)
def test_no_command_executes_a_payload(small_dataset, tmp_path, name, kind):
    path = make_hostile(tmp_path / "files" / "7.pth", kind)
    images = small_dataset / "images" / "val2014"
    places = {"path": path, "folder": path.parent, "images": images}
    words = TAKE_CHECKPOINTS[name].format(**places, image=next(images.iterdir())).split()
    code, printed, error = run_here(find_command(name), *words, quiet=[])
    assert (code, printed) == (2, ""), error
    sentence = error.splitlines()[-1]  # a progress bar may be left of it
    assert "7.pth" in sentence
    assert REASONS.get(name, INVALID) in sentence or (name, kind) == ("import_mcan", "bare pickle")
    assert "Traceback" not in error
    assert [each.name for each in path.parent.iterdir()] == ["7.pth"]


@pytest.mark.parametrize("how", ["resume", "init_from"])
def test_no_training_run_executes_a_payload(small_dataset, tmp_path, how):
    path = make_hostile(tmp_path / "runs" / "old" / "step_00000009.pt", "archive")
    more = ["name=old", "resume=true"] if how == "resume" else ["name=new", f"init_from={path}"]
    words = settings(small_dataset, tmp_path / "runs", *more)
    error = read_error(train.main, *words, quiet=[])
    assert "step_00000009.pt is not a valid checkpoint" in error
    assert not path.with_name("ran").exists()


HOSTILE_SETTINGS = {
    "_target_": "payload_module.run",
    "modules": ["payload_module"],
    "hydra": {"run": {"dir": "${payload:1}"}},
    "secret": "${oc.env:FAULTS_SECRET}",
    "name": "!!python/object/apply:os.mkdir [ran]",
}


def make_hostile_checkpoint(run, path, **options):
    """A checkpoint whose stored config and head options try to execute code."""
    content = load_checkpoint(run / "best.pt")
    return copy_checkpoint(
        run / "best.pt",
        path,
        config={**content["config"], **HOSTILE_SETTINGS},
        attention={**content["attention"], **options},
    )


@pytest.fixture
def ran(tmp_path, monkeypatch):
    """The folder that importing payload_module would create; the module is on the path."""
    module = tmp_path / "code" / "payload_module.py"
    module.parent.mkdir()
    module.write_text(f"import os\nos.mkdir({str(tmp_path / 'ran')!r})\n")
    monkeypatch.syspath_prepend(module.parent)
    monkeypatch.setenv("FAULTS_SECRET", "taken-from-the-environment")
    return tmp_path / "ran"


def test_the_config_inside_a_checkpoint_is_neither_imported_nor_resolved(
    multimodal_run, ran, tmp_path
):
    path = make_hostile_checkpoint(multimodal_run, tmp_path / "hostile" / "best.pt")
    code, printed, error = run_here(evaluate.main, f"checkpoint={path}", f"output={tmp_path / 'o'}")
    assert code == 0, error
    assert not ran.exists()
    written = "".join(p.read_text() for p in (tmp_path / "o").iterdir())
    assert "taken-from-the-environment" not in printed + error + written


@pytest.mark.parametrize(
    "options",
    [{"_target_": "payload_module.run"}, {"lam": "${oc.env:FAULTS_SECRET}"}, {"name": "payload"}],
    ids=str,
)
def test_head_options_inside_a_checkpoint_run_nothing(multimodal_run, ran, tmp_path, options):
    path = make_hostile_checkpoint(multimodal_run, tmp_path / "hostile" / "best.pt", **options)
    error = read_error(evaluate.main, f"checkpoint={path}")
    assert "best.pt" in error
    assert "taken-from-the-environment" not in error
    assert not ran.exists()


def test_a_resumed_run_neither_imports_nor_resolves_its_checkpoints_config(
    multimodal_run, ran, small_dataset, tmp_path
):
    make_hostile_checkpoint(multimodal_run, tmp_path / "runs" / "old" / "step_00000009.pt")
    words = settings(small_dataset, tmp_path / "runs", "name=old", "resume=true", "optim.epochs=1")
    code, _, error = run_here(train.main, *words, quiet=[])
    assert code == 0, error
    assert not ran.exists()
    assert "taken-from-the-environment" not in (tmp_path / "runs/old/config.yaml").read_text()
