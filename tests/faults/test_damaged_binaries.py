"""Images, tensors and archives with bytes cut off, flipped, inserted or removed."""

import pytest
from hypothesis import given, settings

from tests.faults.binary_formats import FORMATS
from tests.faults.fuzzing import Rejected, damages, read_or_reject

NUM_CASES = 400  # per format


@pytest.mark.filterwarnings("ignore")  # Pillow warns about unusual files
@pytest.mark.parametrize("kind", FORMATS, ids=lambda kind: kind.name)
def test_a_damaged_binary_file_is_rejected_or_still_valid(kind, tmp_path_factory):
    path = tmp_path_factory.mktemp("damaged") / kind.file
    kind.make(path)
    valid = path.read_bytes()
    if kind.name != "published MCAN":
        kind.check(kind.read(path))

    @settings(max_examples=NUM_CASES)
    @given(damages(len(valid)))
    def damage_and_read(damage):
        path.unlink()  # a tensor of the previous case may still be mapped
        path.write_bytes(damage.apply(valid))
        value = read_or_reject(kind.read, path, kind.name)
        if not isinstance(value, Rejected):
            kind.check(value)

    damage_and_read()
