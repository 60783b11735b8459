import pytest

from mcan.cost.hours import find_gpu


@pytest.mark.parametrize(
    ("device_name", "entry"),
    [
        ("Tesla V100-SXM2-32GB", "V100 32 GB"),
        ("NVIDIA GeForce RTX 4090", "RTX 4090 24 GB"),
        ("NVIDIA H100 80GB HBM3", "H100 80 GB"),
        ("Tesla T4", None),
        ("NVIDIA A1000", None),
    ],
)
def test_a_gpu_is_found_by_its_model(device_name, entry):
    assert find_gpu(device_name) == entry
