"""Arguments of a small make paper."""

import pytest

from tests.small_runs import SMALL


@pytest.fixture(scope="module")
def arguments(small_dataset, tmp_path_factory):
    runs = tmp_path_factory.mktemp("paper")
    words = [word for word in SMALL if not word.startswith("data")]
    train = " ".join([*words, "optim.epochs=1", "optim.batch_size=20", "tracker=[]"])
    measure = "runtime.num_threads=1 runtime.show_progress=false"
    return [
        "dataset=custom", f"data.root={small_dataset}", "seeds=[3]", f"runs={runs}",
        f"train={train}", f"measure={measure}", "fine_tuning_epochs=1", "figures=0", "parallel=2",
    ]  # fmt: skip
