"""From a config or a checkpoint to a model: the sizes, the head and its schedules."""

import importlib
from typing import Any

from omegaconf import DictConfig, OmegaConf

import attention
from mcan import MCAN, Sizes
from mcan.schedule import EpochRate, LearningRate, Schedule, StepRate, parse_schedule

SCHEDULED = ("lam", "train_iterations", "test_iterations")


def import_modules(names: list[str]) -> None:
    """Import the user's own modules, which register heads."""
    for name in names:
        try:
            importlib.import_module(name)
        except ModuleNotFoundError as error:
            raise ValueError(
                f"the module '{name}' named in modules= was not found: {error}"
            ) from None


def head_schedules(options: dict[str, Any], num_epochs: int) -> dict[str, Schedule]:
    """Schedules of λ and of the iteration counts, where the head has them."""
    return {
        name: parse_schedule(f"attention.{name}", options[name], num_epochs)
        for name in SCHEDULED
        if name in options
    }


def build_head(options: dict[str, Any], schedules: dict[str, Schedule]) -> attention.Head:
    """The head of a config, with its first epoch's values."""
    settled = {name: value for name, value in options.items() if name != "name"}
    for name, schedule in schedules.items():
        value = schedule.at(1)
        settled[name] = round(value) if name.endswith("iterations") else value
    return attention.build(options["name"], **settled)


def build_model(model: DictConfig, head: attention.Head, sizes: dict[str, int]) -> MCAN:
    """The network of a config for the data's numbers of words, answers and features."""
    options = dict(OmegaConf.to_container(model))  # type: ignore[arg-type]
    dropout = options.pop("dropout")
    return MCAN(Sizes(**sizes, **options), head, dropout)


def fill_model(model: MCAN, weights: dict[str, Any], owner: str) -> None:
    """Load weights; those of another architecture are refused by their owner's name."""
    try:
        model.load_state_dict(weights)
    except RuntimeError:
        sizes = ", ".join(f"{name} {value}" for name, value in vars(model.sizes).items())
        raise ValueError(
            f"{owner} has another architecture: its weights do not fit a model of {sizes}"
        ) from None


def refuse_other_settings(config: DictConfig, before: dict[str, Any]) -> None:
    """Raise where a run that goes on would be another one; more epochs are more of the same."""
    now: dict[str, Any] = OmegaConf.to_container(config, resolve=True)  # type: ignore[assignment]
    for name in ("seed", "train_split", "model", "attention", "optim"):
        old, new = flatten(name, before[name]), flatten(name, now[name])
        keys = sorted({*old, *new} - {"optim.epochs"})
        # a head's name first: the options of another head differ because of it
        for key in sorted(keys, key=lambda key: key != "attention.name"):
            if old.get(key) != new.get(key):
                raise ValueError(
                    f"the run to resume was started with {key}={old.get(key)}, not {new.get(key)}; "
                    f"give it the same settings, or another name=…"
                )


def flatten(name: str, setting: Any) -> dict[str, Any]:
    """Dotted keys and values of a setting."""
    if not isinstance(setting, dict):
        return {name: setting}
    return {
        key: value
        for part, inner in setting.items()
        for key, value in flatten(f"{name}.{part}", inner).items()
    }


def build_rate(setting: DictConfig) -> LearningRate:
    """The learning rate of a config: per epoch as in the paper, or per step."""
    options = dict(OmegaConf.to_container(setting))  # type: ignore[arg-type]
    try:
        return StepRate(**options) if "peak" in options else EpochRate(**options)
    except TypeError:
        raise ValueError(
            "optim.rate needs slope, cap, decay, decay_after and decay_every, or peak, "
            f"warmup_steps and decay_share; it has {', '.join(options)}"
        ) from None
