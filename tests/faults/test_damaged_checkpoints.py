"""Checkpoints with damaged bytes, and valid archives with unexpected contents."""

import copy

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from mcan.checkpoint import KIND, load_checkpoint
from mcan.evaluation.trained_model import load_trained
from tests.faults.fuzzing import Rejected, damages, read_or_reject
from tests.small_models import train_small

UNEXPECTED = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 2**70), st.floats(), st.text(max_size=8),
    st.lists(st.integers(), max_size=2), st.just({}), st.just(torch.zeros(2)),
    st.just({"_target_": "os.mkdir"}), st.just("${oc.env:HOME}"),
)  # fmt: skip


@pytest.fixture(scope="module")
def checkpoint(small_dataset, tmp_path_factory):
    run = train_small(
        small_dataset, tmp_path_factory.mktemp("runs"), "valid", "attention=multimodal"
    )
    return run / "best.pt"


def assert_same_model(trained, content):
    for name, tensor in trained.model.state_dict().items():
        assert torch.equal(tensor, content["model"][name])


def test_a_damaged_checkpoint_is_rejected_or_has_the_written_weights(checkpoint, tmp_path_factory):
    path = tmp_path_factory.mktemp("damaged") / "best.pt"
    content, valid = load_checkpoint(checkpoint), checkpoint.read_bytes()

    @settings(max_examples=300)
    @given(damages(len(valid)))
    def damage_and_load(damage):
        path.write_bytes(damage.apply(valid))
        trained = read_or_reject(load_trained, path, "checkpoints, bytes")
        if not isinstance(trained, Rejected):
            assert_same_model(trained, content)

    damage_and_load()


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


def test_a_checkpoint_with_unexpected_contents_is_rejected_or_usable(checkpoint, tmp_path_factory):
    path = tmp_path_factory.mktemp("unexpected") / "best.pt"
    content = {"kind": KIND, "format": 1, **load_checkpoint(checkpoint)}
    del content["optimizer"]  # large, and not read here
    places = [place for place in list_places(content) if place]

    @settings(max_examples=400)
    @given(st.sampled_from(places), UNEXPECTED, st.booleans())
    def change_and_load(place, value, remove):
        torch.save(replace(content, place, value, remove), path)
        read_or_reject(load_trained, path, "checkpoints, contents")

    change_and_load()
