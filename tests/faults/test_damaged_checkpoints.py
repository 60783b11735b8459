"""Checkpoints with damaged bytes, and valid archives with unexpected contents."""

import copy
import shutil
from functools import partial

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from mcan.checkpoint import load_checkpoint
from mcan.evaluation.trained_model import load_trained
from tests.faults.fuzzing import Format
from tests.small_runs import assert_same

UNEXPECTED = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 2**70), st.floats(), st.text(max_size=8),
    st.lists(st.integers(), max_size=2), st.just({}), st.just(torch.zeros(2)),
    st.just({"_target_": "os.mkdir"}), st.just("${oc.env:HOME}"),
)  # fmt: skip


def checkpoint_format(run, name, check=lambda trained: None):
    return Format(name, "best.pt", partial(shutil.copy, run / "best.pt"), load_trained, check)


def test_a_damaged_checkpoint_is_rejected_or_has_the_written_weights(
    multimodal_run, tmp_path_factory
):
    weights = load_checkpoint(multimodal_run / "best.pt")["model"]
    kind = checkpoint_format(
        multimodal_run,
        "checkpoints, bytes",
        lambda trained: assert_same(dict(trained.model.state_dict()), dict(weights)),
    )
    path = tmp_path_factory.mktemp("damaged") / kind.file
    kind.make(path)
    kind.fuzz(path, 300)


def list_places(content, place=()):
    """The path of keys to every value in a checkpoint, up to three entries of each list."""
    yield place
    if isinstance(content, dict):
        for key in content:
            yield from list_places(content[key], (*place, key))
    elif isinstance(content, list):
        for number in range(min(3, len(content))):
            yield from list_places(content[number], (*place, number))


def replace(content, place, value, remove):
    """A copy with another value at a place, or with the place removed."""
    changed = copy.copy(content)
    if len(place) > 1:
        changed[place[0]] = replace(content[place[0]], place[1:], value, remove)
    elif remove:
        del changed[place[0]]
    else:
        changed[place[0]] = value
    return changed


def test_a_checkpoint_with_unexpected_contents_is_rejected_or_usable(
    multimodal_run, tmp_path_factory
):
    kind = checkpoint_format(multimodal_run, "checkpoints, contents")
    path = tmp_path_factory.mktemp("unexpected") / kind.file
    content = load_checkpoint(multimodal_run / "best.pt")
    del content["optimizer"]  # large, and not read here
    places = [place for place in list_places(content) if place]

    @settings(max_examples=400)
    @given(st.sampled_from(places), UNEXPECTED, st.booleans())
    def change_and_load(place, value, remove):
        torch.save(replace(content, place, value, remove), path)
        kind.read_or_reject(path, kind.name)

    change_and_load()
