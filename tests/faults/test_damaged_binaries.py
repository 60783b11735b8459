"""Pictures, tensors and archives with bytes cut off, flipped, put in or lost."""

import pytest
from hypothesis import given, settings

from tests.faults.binary_formats import FORMATS
from tests.faults.fuzzing import Refused, damages, refuse_or_read

NUM_CASES = 400  # of each format


@pytest.mark.filterwarnings("ignore")  # Pillow's about odd files
@pytest.mark.parametrize("kind", FORMATS, ids=lambda kind: kind.name)
def test_a_damaged_binary_is_refused_or_means_what_it_says(kind, tmp_path_factory):
    path = tmp_path_factory.mktemp("damaged") / kind.file
    kind.make(path)
    sound = path.read_bytes()
    if kind.name != "published MCAN":
        kind.check(kind.read(path))

    @settings(max_examples=NUM_CASES)
    @given(damages(len(sound)))
    def damage_and_read(damage):
        path.unlink()  # a mapped tensor of the case before may still be there
        path.write_bytes(damage.apply(sound))
        value = refuse_or_read(kind.read, path, kind.name)
        if not isinstance(value, Refused):
            kind.check(value)

    damage_and_read()
