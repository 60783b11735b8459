"""Regions from end to end: a published MCAN answers, is drawn and exported; others are told no."""

import dataclasses
import json
import re

import numpy as np
import pytest
from PIL import Image

from data.features.from_npz import convert_regions
from data.features.manifest import GRID, Manifest
from data.features.reader import FeatureStore
from data.io.atomic_files import write_json
from data.vqa.data_folder import DataFolder
from figures.attention_samples import collect_samples
from figures.illustrated_split import open_illustrated_split
from mcan.checkpoint import load_checkpoint
from mcan.evaluation.trained_model import load_trained
from mcan.runtime.settings import Runtime
from scripts import (
    ask,
    evaluate,
    export,
    features,
    figures,
    gallery,
    human_attention,
    import_mcan,
    verify_features,
)
from scripts.demo.model_list import ModelList
from scripts.doctor import __main__ as doctor
from scripts.train import main as train
from tests.data.features.sample_features import draw_regions, write_npz
from tests.data.vqa.official_files import make_annotation, make_question
from tests.scripts.test_import_mcan import (
    GOLDEN,
    HEADS,
    NUM_ANSWERS,
    NUM_WORDS,
    SIZES,
    golden_state,
    write_published,
    write_words,
)
from tests.small_models import (
    compose,
    copy_checkpoint,
    draw_picture,
    read_error,
    run_here,
    train_small,
)
from tests.small_runs import settings

pytestmark = pytest.mark.filterwarnings("ignore:a constant image")  # doctor goes on

PHOTO = (160, 120)  # width and height
ANSWERS = [f"answer {n}" for n in GOLDEN["probabilities"].argmax(1)]


def write_golden_regions(folder):
    """The golden images' rows as bottom-up files of 30, 26 and 22 regions."""
    folder.mkdir()
    for number, (image, (height, width)) in enumerate(zip(GOLDEN["image"], SIZES, strict=True), 1):
        arrays = draw_regions(height * width, 1, *PHOTO, seed=number)
        arrays["x"] = image[: height * width].T.astype(np.float32)
        np.savez(folder / f"COCO_val2014_{number:012d}.jpg.npz", **arrays)


def write_golden_split(folder, split):
    """The golden questions in words; people answer as the published network does."""
    texts = [" ".join(f"word{n - 2}" for n in row if n) for row in GOLDEN["question"]]
    questions = [make_question(n, text, n) for n, text in enumerate(texts, 1)]
    content = {"data_subtype": folder.layout.question_subtype(split), "questions": questions}
    write_json(folder.questions(split), content)
    if split == "val":
        entries = [make_annotation(n, [a] * 10, a, n) for n, a in enumerate(ANSWERS, 1)]
        write_json(folder.annotations(split), {**content, "annotations": entries})
    folder.image_folder(split).mkdir(parents=True)
    for number in (1, 2, 3):
        picture = draw_picture(PHOTO).convert("RGB").resize(PHOTO, Image.Resampling.NEAREST)
        picture.save(folder.image_folder(split) / folder.image_names(split, number)[0])


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """The golden MCAN imported by the command, and a data folder with its regions."""
    root = tmp_path_factory.mktemp("published")
    folder = DataFolder(root / "data")
    write_golden_regions(root / "npz")
    for split in ("val", "test"):
        write_golden_split(folder, split)
        code, printed, error = run_here(
            features.main, f"source={root / 'npz'}", f"output={folder.store(split)}", quiet=[]
        )
        assert code == 0, error
        assert "3 images (3 copied now), 78 regions of 24 features" in printed
    known = ["PAD", "UNK", *(f"word{n}" for n in range(NUM_WORDS - 2))]
    words = write_words(root, known, [f"answer {n}" for n in range(NUM_ANSWERS)])
    pickle = write_published(root / "epoch13.pkl", golden_state())
    given = [f"checkpoint={pickle}", f"output={root}/mcan.pt", f"num_heads={HEADS}", *words]
    code, printed, error = run_here(import_mcan.main, *given, "train_split=train", quiet=[])
    assert code == 0, error
    assert "24 features per region" in printed
    return root / "mcan.pt", folder


def read_answers(path):
    return {each["question_id"]: each["answer"] for each in json.loads(path.read_text())}


@pytest.mark.parametrize("mixing", ["none", "all"])
def test_a_published_mcan_is_evaluated_on_regions(published, tmp_path, mixing):
    """Batches by number of regions, or of mixed numbers with padding, give its own answers."""
    checkpoint, folder = published
    words = [f"checkpoint={checkpoint}", f"data.root={folder.root}", f"runtime.mixing={mixing}"]
    code, _, error = run_here(evaluate.main, *words, f"output={tmp_path}")
    assert code == 0, error
    assert json.loads((tmp_path / "val.json").read_text())["accuracy"] == 100.0
    (results,) = tmp_path.glob("vqa_OpenEnded_*_results.json")
    assert read_answers(results) == dict(enumerate(ANSWERS, 1))


def test_what_an_evaluation_says_of_a_store_of_regions_speaks_of_regions(published, tmp_path):
    checkpoint, folder = published
    words = [f"data.root={folder.root}", f"output={tmp_path}"]
    sparse = "attention.normaliser=sparsemax"
    code, printed, error = run_here(evaluate.main, f"checkpoint={checkpoint}", sparse, *words)
    assert code == 0, error
    assert "\nregions of weight 0: " in printed
    manifest = Manifest.parse(load_checkpoint(checkpoint)["manifest"], checkpoint)
    other = dataclasses.replace(manifest, backbone="R-50", cells=GRID).dump()
    copy_checkpoint(checkpoint, tmp_path / "grid.pt", manifest=other)
    error = read_error(evaluate.main, f"checkpoint={tmp_path / 'grid.pt'}", *words)
    assert "holds 24 features per region of backbone bottom-up-attention, but" in error
    assert "was trained on 24 per cell of backbone R-50" in error


def test_a_published_mcan_exports_its_answers_on_regions(published, tmp_path):
    checkpoint, folder = published
    words = [f"checkpoint={checkpoint}", f"data.root={folder.root}", f"output={tmp_path}"]
    code, _, error = run_here(export.main, *words)
    assert code == 0, error
    (results,) = tmp_path.glob("vqa_OpenEnded_*test2015*_results.json")
    assert read_answers(results) == dict(enumerate(ANSWERS, 1))


def test_samples_have_the_published_probabilities_and_a_box_per_weight(published):
    checkpoint, folder = published
    trained, runtime = load_trained(checkpoint), Runtime(show_progress=False, loader_threads=0)
    split = open_illustrated_split(folder, "val", [trained], runtime)
    samples = collect_samples(trained, split.questions, split.stores, runtime)
    for sample, probabilities in zip(samples, GOLDEN["probabilities"], strict=True):
        assert sample.prediction.probability == pytest.approx(probabilities.max(), abs=2e-3)
        with np.load(folder.root.parent / "npz" / name_file(sample.question_id)) as file:
            np.testing.assert_allclose(sample.boxes, file["bbox"] / [*PHOTO, *PHOTO], atol=1e-6)
        assert sample.cells.shape == (len(sample.boxes), 1)
        assert sample.cells.sum() == pytest.approx(1)
        assert split.divergence(sample) is None


def name_file(image_id):
    return f"COCO_val2014_{image_id:012d}.jpg.npz"


def test_figures_and_gallery_draw_boxes(published, tmp_path):
    checkpoint, folder = published
    words = [f"checkpoints=[{checkpoint}]", f"data.root={folder.root}"]
    code, _, error = run_here(figures.main, *words, f"output={tmp_path / 'f'}", "dpi=60")
    assert code == 0, error
    assert len([*(tmp_path / "f").glob("*.png")]) == 3
    code, _, error = run_here(gallery.main, *words, f"output={tmp_path / 'g.html'}")
    assert code == 0, error
    page = (tmp_path / "g.html").read_text()
    assert len(re.findall(r'<rect [^>]*fill="none" stroke="#fff"', page)) >= 3
    assert '<img class="cells"' not in page


def test_a_store_of_regions_is_verified(published):
    _, folder = published
    code, printed, error = run_here(verify_features.main, f"store={folder.store('val')}", quiet=[])
    assert code == 0, error
    assert "bottom-up-attention, 24 features per region" in printed
    assert "regions   22 (1), 26 (1), 30 (1)" in printed


def test_what_needs_a_grid_or_a_backbone_says_no_in_one_sentence(published, tmp_path):
    checkpoint, folder = published
    draw_picture().save(tmp_path / "photo.png")
    asked = [f"image={tmp_path / 'photo.png'}", "question=word1 word2"]
    no_detector = "was trained on regions of 'bottom-up-attention'"
    assert no_detector in read_error(ask.main, f"checkpoint={checkpoint}", *asked)
    with pytest.raises(ValueError, match=no_detector):
        ModelList({"m": checkpoint}, "cpu", changed={}).get("m")
    for head in ("unimodal", "multimodal"):
        options = compose("train", [f"attention={head}"]).attention
        other = copy_checkpoint(checkpoint, tmp_path / f"{head}.pt", attention=options)
        error = read_error(evaluate.main, f"checkpoint={other}", f"data.root={folder.root}")
        assert f"form no grid over the image, and {head} attention needs one" in error
    words = [f"checkpoints=[{checkpoint}]", f"data.root={folder.root}", f"output={tmp_path / 'f'}"]
    error = read_error(figures.main, *words, "layers=true")
    assert "form no grid over the image, and layers=true draws the cells of one" in error
    (folder.root / "v1").mkdir()
    write_json(folder.v1_questions("val"), json.loads(folder.questions("val").read_text()))
    folder.human_maps("val").mkdir(parents=True)
    Image.new("L", (20, 20), 200).save(folder.human_maps("val") / "1_1.png")
    words = [f"checkpoints=[{checkpoint}]", f"data.root={folder.root}", f"output={tmp_path / 'h'}"]
    error = read_error(human_attention.main, *words)
    assert "holds regions, which form no grid over the image, and people's attention" in error


def test_without_image_sizes_figures_say_what_is_missing(published, tmp_path):
    checkpoint, folder = published
    source = tmp_path / "npz"
    source.mkdir()
    for path in (folder.root.parent / "npz").iterdir():
        with np.load(path) as file:
            np.savez(source / path.name, x=file["x"], bbox=file["bbox"])
    root = tmp_path / "data"
    root.mkdir()
    for name in ("images", folder.questions("val").name, folder.annotations("val").name):
        (root / name).symlink_to(folder.root / name)
    convert_regions(source, DataFolder(root).store("val"))
    words = [f"checkpoint={checkpoint}", f"data.root={root}", f"output={tmp_path / 'e'}"]
    code, _, error = run_here(evaluate.main, *words)
    assert code == 0, error
    words = [f"checkpoints=[{checkpoint}]", f"data.root={root}", f"output={tmp_path / 'f'}"]
    assert "does not say where the regions of image" in read_error(figures.main, *words)


@pytest.fixture
def region_data(data, tmp_path):
    """The small dataset with 4 to 6 regions per image, in both orientations of the files."""
    for split in ("train", "val", "test"):
        with FeatureStore(data.store(split)) as store:
            counts = {n: 4 + n % 3 for n in store.image_ids.tolist()}
        write_npz(tmp_path / split, counts, transposed=split == "train")
        data.store(split).unlink()
        convert_regions(tmp_path / split, data.store(split))
    return data


def test_discrete_attention_is_trained_on_regions_and_others_say_no(region_data, tmp_path):
    root, runs = region_data.root, tmp_path / "runs"
    run = train_small(root, runs, "regions", "attention=discrete")
    code, _, error = run_here(evaluate.main, f"checkpoint={run}", f"output={tmp_path / 'e'}")
    assert code == 0, error
    assert not load_trained(run).manifest.is_grid
    for head in ("unimodal", "multimodal"):
        words = settings(root, runs, f"name={head}", f"attention={head}")
        error = read_error(train, *words, quiet=[])
        assert f"holds regions, which form no grid over the image, and {head} attention" in error
        assert not (runs / head).exists()
    code, printed, _ = run_here(doctor.main, *settings(root, runs), quiet=[])
    assert code == 1
    assert "form no grid, and multimodal attention needs one" in printed
