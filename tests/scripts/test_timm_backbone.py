"""From images by a timm model to a trained model that answers questions about a new photo."""

import numpy as np
import pytest

from data.backbones.registry import open_backbone
from data.features.reader import FeatureStore
from data.io.images import read_image
from data.vqa.data_folder import DataFolder
from scripts import ask, extract
from scripts.demo.model_list import ModelList
from tests.data.backbones.sample_timm import save_weights
from tests.small_models import draw_picture, read_error, run_here, train_small
from tests.small_runs import ALONE

QUESTION = "What color is the circle?"
RESIZE = "resize=[64,128]"


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    return save_weights(tmp_path_factory.mktemp("weights") / "test_vit.safetensors", "test_vit")


@pytest.fixture
def run(data, small_dataset, tmp_path, weights):
    """A model trained on features of timm:test_vit, of all images of the small dataset."""
    whole = DataFolder(small_dataset)
    for split in ("train", "val"):
        words = [f"images={whole.image_folder(split)}", f"output={data.store(split)}"]
        words += ["backbone=timm:test_vit", f"weights={weights}", RESIZE, "force=true"]
        code, _, error = run_here(extract.main, *words, "device=cpu", quiet=[])
        assert code == 0, error
    return train_small(data.root, tmp_path / "runs", "vit", "attention=discrete")


def test_a_new_photo_is_described_by_the_model_of_the_store(run, data, small_dataset, weights):
    photo = run / "photo.png"
    draw_picture().save(photo)
    words = [f"checkpoint={run}", f"image={photo}", f"question={QUESTION}", "dpi=30"]
    code, printed, error = run_here(ask.main, *words, f"weights={weights}")
    assert (code, error) == (0, "")
    assert printed.startswith(QUESTION)
    assert (run / "ask" / "photo-attention.png").is_file()

    # an image of the dataset is described as in the store
    models = ModelList({"vit": run}, ALONE.device, changed={}, weights=str(weights))
    backbone = models.get("vit").backbone
    assert backbone.name == "timm:test_vit.r160_in1k"
    with FeatureStore(data.store("val")) as store:
        image_id = int(store.image_ids[0])
        picture = read_image(DataFolder(small_dataset).image("val", image_id))
        rows = backbone.describe(picture).reshape(-1, 64)
        np.testing.assert_allclose(store.rows(image_id), rows, rtol=2e-3, atol=2e-3)

    other = save_weights(run / "other.safetensors", "test_vit", seed=1)
    error = read_error(ask.main, *words, f"weights={other}")
    made_with = open_backbone("timm:test_vit", weights).weights
    assert f"features of other timm:test_vit.r160_in1k weights (fingerprint {made_with})" in error
