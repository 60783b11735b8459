"""Every key of every command has a type, and every wrong value one sentence that names its key."""

import dataclasses
from pathlib import Path
from typing import Annotated, get_args, get_origin

import hydra
import pytest
import yaml
from omegaconf import OmegaConf

from scripts.cli.settings import list_choices, list_kinds, read_settings
from tests.commands import COMMANDS

CONFIGS = Path(__file__).parents[2] / "configs"
NAMES = sorted(file.stem for file in CONFIGS.glob("*.yaml"))
DEFAULTS = {"runtime": "runtime/default", "model": "model/small", "launcher": "launcher/slurm"}


def compose(name):
    """The config of a command as plain values, with what a user must give."""
    with hydra.initialize_config_module("configs", version_base="1.3"):
        config = OmegaConf.to_container(hydra.compose(name), resolve=True)
    return {key: "given" if value == "???" else value for key, value in config.items()}


COMPOSED = {name: compose(name) for name in NAMES}


def list_fields(schema, *place):
    """The place and the type of every setting that is not a group."""
    for name, kind in list_kinds(schema).items():
        if dataclasses.is_dataclass(kind):
            yield from list_fields(kind, *place, name)
        else:
            yield (*place, name), kind


FIELDS = [
    pytest.param(name, place, kind, id=f"{name}-{'.'.join(place)}")
    for name in NAMES
    for place, kind in list_fields(COMMANDS[name].schema)
]


def change(config, place, value):
    """A copy of a config with another value in one place."""
    first, *rest = place
    return {**config, first: change(config[first], rest, value) if rest else value}


def list_wrong(kind):
    """Values that a type must not accept: of another type, out of range, not among the choices."""
    choices = list_choices(kind)
    kinds = [get_args(each)[0] if get_origin(each) is Annotated else each for each in choices]
    if dict in map(get_origin, kinds):
        return ["text", 5]
    fitting = {"text": str, True: bool, 5: int, 1.5: float, None: type(None)}
    wrong = [{"a": 1}, *(value for value, fits in fitting.items() if fits not in kinds)]
    if float in kinds and 5 in wrong:
        wrong.remove(5)  # a whole number is a number too
    for each in choices:
        if get_origin(each) is Annotated and get_args(each)[1].startswith(">"):
            wrong += [-1, float("nan")] if float in kinds else [-1]
        if get_origin(each) in (list, tuple):
            wrong += [[{"a": 1}], [None]]
    return wrong


def test_every_command_has_a_config_and_the_other_way_round():
    assert sorted(COMMANDS) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_every_key_of_the_yaml_is_a_setting_of_a_fitting_type(name):
    settings = read_settings(COMMANDS[name].schema, COMPOSED[name], name)
    assert set(COMPOSED[name]) <= {field.name for field in dataclasses.fields(settings)}


@pytest.mark.parametrize(("name", "place", "kind"), FIELDS)
def test_a_wrong_value_of_any_setting_is_named_in_one_sentence(name, place, kind):
    for value in list_wrong(kind):
        with pytest.raises(ValueError, match=r"^[^\n]+$") as problem:
            read_settings(COMMANDS[name].schema, change(COMPOSED[name], place, value), name)
        assert ".".join(place) in str(problem.value), value


@pytest.mark.parametrize(("group", "file"), DEFAULTS.items())
def test_the_defaults_of_a_class_are_those_of_its_yaml(group, file):
    train = yaml.safe_load((CONFIGS / "train.yaml").read_text())
    written = yaml.safe_load((CONFIGS / f"{file}.yaml").read_text()) | train.get(group, {})
    schema = list_kinds(COMMANDS["sweep"].schema)[group]
    for field in dataclasses.fields(schema):
        default = field.default
        if field.default_factory is not dataclasses.MISSING:
            default = field.default_factory()
        if default is not dataclasses.MISSING and (group, field.name) != ("launcher", "gres"):
            assert written[field.name] == default, field.name


def test_a_group_of_a_users_own_may_leave_out_what_has_a_default():
    config = change(COMPOSED["train"], ["data"], {"name": "mine", "root": "folder"})
    data = read_settings(COMMANDS["train"].schema, config, "train").data
    assert (data.layout, data.question_length, data.min_answer_count) == ("vqa_v2", 14, 9)
    config = change(COMPOSED["train"], ["data"], {"root": "folder"})
    with pytest.raises(ValueError, match=r"^the config lacks data\.name$"):
        read_settings(COMMANDS["train"].schema, config, "train")


def test_numbers_are_of_their_type_and_the_whole_config_is_kept():
    config = change(COMPOSED["train"], ["runtime", "timeout_minutes"], 3)
    settings = read_settings(COMMANDS["train"].schema, config, "train")
    assert type(settings.runtime.timeout_minutes) is float
    assert settings.optim.betas == (0.9, 0.98)
    assert settings.composed == config
