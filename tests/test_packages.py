"""Which package may import what: the table of docs/architecture.md, checked import by import."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
OURS = {"attention", "mcan", "data", "figures", "benchmarks", "scripts", "configs"}
FILES = {"numpy", "h5py", "PIL", "tqdm"}

# A package's rule is that of the longest name that fits it.
ALLOWED = {
    "attention": {"attention", "torch"},
    "mcan.network": {"mcan.network", "attention", "torch"},
    "mcan.runtime": {"mcan.runtime", "mcan.network", "attention", "torch"},
    "mcan.cost": {"mcan.cost", "mcan.network", "mcan.runtime", "attention", "torch"},
    "mcan.evaluation": {
        "mcan.evaluation", "mcan.network", "mcan.runtime", "mcan.checkpoint",
        "mcan.head_options", "mcan.head_schedule",
        "attention", "data", "torch", "numpy", "tqdm",
    },
    "mcan.checkpoint": {"data", "torch"},
    "mcan.head_options": set(),
    "mcan.head_schedule": {"attention", "data"},
    "mcan.release": {"mcan.release", "mcan.evaluation", "data"},
    "mcan.attention_arrays": {
        "mcan.attention_arrays", "mcan.evaluation", "mcan.network", "mcan.runtime",
        "attention", "data", "torch", "numpy", "tqdm",
    },
    "mcan.published": {
        "mcan.published", "mcan.network", "mcan.checkpoint", "mcan.head_schedule",
        "attention", "data", "torch", "numpy",
    },
    "mcan.training.trackers": {"mcan", "data", "torch", "numpy", "tqdm", "wandb"},
    "mcan": {"mcan", "attention", "data", "torch", "numpy", "tqdm"},
    "data": {"data", "torch", "torchvision", *FILES},
    "data.io": {"data.io", "torch", *FILES},
    "data.backbones.timm_model": {"data", "torch", "PIL", "timm"},  # an extra
    "data.backbones.timm_weights": {"data", "torch", "timm", "safetensors"},
    "figures.drawing": {"figures.drawing", "matplotlib", "numpy", "PIL"},
    "figures": {"figures", "mcan", "attention", "data", "torch", "matplotlib", *FILES},
    "benchmarks": {"benchmarks", "mcan", "attention", "data", "torch", *FILES},
}  # fmt: skip


def modules(path):
    """The modules that a file imports, by their full names."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports name their package"
            inner = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (name if is_module(name) else node.module for name in inner)


def is_module(name):
    place = ROOT / name.replace(".", "/")
    return place.is_dir() or place.with_suffix(".py").is_file()


def fits(name, prefixes):
    return any(name == prefix or name.startswith(f"{prefix}.") for prefix in prefixes)


def rule_of(path):
    name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    return max((each for each in ALLOWED if fits(name, [each])), key=len)


def breaches():
    for package in sorted({name.split(".")[0] for name in ALLOWED}):
        for path in sorted((ROOT / package).rglob("*.py")):
            allowed = ALLOWED[rule_of(path)] | set(sys.stdlib_module_names)
            for name in modules(path):
                if name == "mcan" and "mcan.network" in allowed:
                    continue  # its __init__ is the network's
                if not fits(name, allowed):
                    yield f"{path.relative_to(ROOT)}: {name}"


def test_a_room_imports_only_what_it_may():
    assert not list(breaches())


@pytest.mark.parametrize("package", sorted(OURS - {"scripts", "configs"}))
def test_every_package_has_modules_to_look_at(package):
    assert list((ROOT / package).rglob("*.py"))


def test_torchvision_is_imported_in_one_place_and_only_when_a_network_is_built():
    files = [f for package in OURS for f in (ROOT / package).rglob("*.py")]
    importing = [f for f in files if fits("torchvision", {n.split(".")[0] for n in modules(f)})]
    assert importing == [ROOT / "data" / "backbones" / "resnet.py"]
    top_level = ast.parse(importing[0].read_text(encoding="utf-8")).body
    assert not [node for node in top_level if "torchvision" in getattr(node, "module", "")]


def test_no_command_imports_pip_which_would_hide_distutils_from_torch_compile():
    look = "import sys, tests.commands; sys.exit('pip' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", look], cwd=ROOT).returncode == 0


def test_what_only_starts_others_and_the_settings_do_without_torch():
    look = "import sys, scripts.sweep.job, configs.schema.trained; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", look], cwd=ROOT).returncode == 0


def test_every_file_name_says_what_is_in_it():
    vague = {"utils.py", "misc.py", "helpers.py", "common.py"}
    assert not [f for package in OURS for f in (ROOT / package).rglob("*.py") if f.name in vague]


def test_no_package_is_wide():
    packages = [ROOT / package for package in OURS - {"scripts", "configs"}]
    inner = [folder for package in packages for folder in package.rglob("*/")]
    folders = [folder for folder in [*packages, *inner] if folder.name != "__pycache__"]
    wide = {}
    for folder in folders:
        shown = [f for f in folder.iterdir() if f.name not in ("__pycache__", "__init__.py")]
        if len(shown) > 14:
            wide[str(folder.relative_to(ROOT))] = len(shown)
    assert not wide, "a folder holds at most 14 files and folders: divide it"
