"""A store of another dtype: one entry from outside, and everything reads and writes it."""

import numpy as np
import pytest
import torch

from data.batching.loader import Loader
from data.batching.sampler import MicroBatch
from data.features.dtype import DTYPES, register_dtype
from data.features.from_pth import convert_folder
from data.features.store_set import open_stores
from data.features.verify import verify_store
from tests.data.features.sample_features import ask, write_pth, write_sample


@pytest.fixture
def own_formats():
    for name in ("bfloat16", "float32", "float64"):
        register_dtype(name, getattr(torch, name))


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64"])
def test_a_store_of_any_format_is_written_read_verified_staged_and_loaded(
    own_formats, tmp_path, name
):
    tensors = write_pth(tmp_path / "pth")
    path, dtype = tmp_path / "a.h5", getattr(torch, name)
    convert_folder(tmp_path / "pth", path, dtype=name)
    verify_store(path)
    for reader in ("mmap", "pread"):
        stores = open_stores([path], reader, stage_to=tmp_path / "local")
        loader = Loader(stores, ask(list(tensors)), 4)
        pieces = [MicroBatch(np.array([n]), 1.0) for n in range(len(tensors))]
        for batch, tensor in zip(loader.iterate(pieces), tensors.values(), strict=True):
            assert batch.features.dtype == dtype
            assert torch.equal(batch.features[0], tensor[0].flatten(1).t().to(dtype))


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_numbers_that_are_not_finite_are_found_in_any_format(own_formats, name, value):
    dtype = DTYPES[name]
    rows = torch.linspace(-1e4, 1e4, 12).reshape(4, 3)
    array = dtype.encode(7, rows)
    assert dtype.is_finite(array)
    assert dtype.find_bad_row(array) is None
    rows[2, 1] = value
    assert dtype.find_bad_row(dtype.to_array(rows.to(dtype.torch_dtype))) == 2
    with pytest.raises(ValueError, match="image 7 has features that are NaN or infinite"):
        dtype.encode(7, rows)


def test_stores_of_two_formats_are_not_read_as_one(own_formats, tmp_path):
    write_sample(tmp_path / "a.h5")
    write_sample(tmp_path / "b.h5", {40: (1, 2)}, dtype="float32")
    with pytest.raises(
        ValueError, match=r"b.h5 holds features with dtype float32, but dtype float"
    ):
        open_stores([tmp_path / "a.h5", tmp_path / "b.h5"])


def test_a_format_that_is_unknown_or_taken_is_named(tmp_path):
    with pytest.raises(ValueError, match="no dtype of feature stores 'int3'; there are"):
        write_sample(tmp_path / "a.h5", dtype="int3")
    with pytest.raises(ValueError, match="named 'float16' is already registered"):
        register_dtype("float16", torch.float32)
