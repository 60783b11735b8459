import re

import numpy as np
import pytest
import torch

from data.text.embeddings import load_embeddings
from data.text.vocabulary import PAD, Vocabulary
from data.vqa.data_folder import DataFolder
from data.vqa.questions import load_questions
from tests.data.vqa.official_files import real_folder

VOCABULARY = Vocabulary([*("PAD", "UNK"), *(f"word{row}" for row in range(400))])


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.fixture
def glove(tmp_path):
    """Vectors of scale 0.25 for the first half of the words, and of some others."""
    vectors = np.random.default_rng(0).normal(0, 0.25, (250, 50))
    rows = [*((f"word{row}", vector) for row, vector in enumerate(vectors)), ("PAD", [1] * 50)]
    path = tmp_path / "glove.txt"
    path.write_text("".join(f"{word} {' '.join(map(str, vector))}\n" for word, vector in rows))
    return path, vectors


def test_known_words_get_their_vectors_and_the_others_noise_of_the_same_scale(glove):
    path, vectors = glove
    matrix, notice = load_embeddings(path, VOCABULARY.words, generator())
    assert matrix.shape == (402, 50)
    assert matrix.dtype == torch.float32
    np.testing.assert_allclose(matrix[2:252], vectors, rtol=1e-6)
    assert not matrix[PAD].any()
    noise = matrix[252:]  # (150, 50)
    assert abs(noise.mean()) < 4 * 0.25 / np.sqrt(noise.numel())
    assert noise.std() == pytest.approx(vectors.std(), rel=0.05)
    assert len(torch.unique(noise)) > 0.99 * noise.numel()
    assert "250 of 400 words (62.5%)" in notice
    assert "50 numbers" in notice


@pytest.mark.parametrize("path", [None, ""])
def test_without_a_file_all_words_are_random_and_a_notice_says_so(path):
    embeddings = load_embeddings(path, VOCABULARY.words, generator(), num_features=64)
    assert embeddings.matrix.shape == (402, 64)
    assert not embeddings.matrix[PAD].any()
    assert embeddings.matrix[1:].std() == pytest.approx(0.4, rel=0.05)
    assert "no GloVe file was given" in embeddings.notice


def test_the_generator_alone_decides_the_noise(glove):
    for path in (None, glove[0]):
        torch.manual_seed(1)
        first = load_embeddings(path, VOCABULARY.words, generator(5)).matrix
        state = torch.get_rng_state()
        torch.manual_seed(2)
        second = load_embeddings(path, VOCABULARY.words, generator(5)).matrix
        other = load_embeddings(path, VOCABULARY.words, generator(6)).matrix
        assert torch.equal(first, second)
        assert not torch.equal(first, other)
        torch.manual_seed(1)
        assert torch.equal(state, torch.get_rng_state())


def test_a_file_without_any_of_the_words_is_rejected(tmp_path):
    (tmp_path / "glove.txt").write_text("hund 1 2\nkatze 3 4\n")
    with pytest.raises(ValueError, match="none of the 400 question words"):
        load_embeddings(tmp_path / "glove.txt", VOCABULARY.words, generator())


@pytest.mark.real
def test_real_vectors_cover_real_questions():
    folder = DataFolder(real_folder())
    questions = load_questions(folder.question_files("train+val"))
    vocabulary = Vocabulary.build(questions.texts)
    path = folder.root / "glove.6B.100d.txt"
    embeddings = load_embeddings(path, vocabulary.words, generator())
    assert embeddings.matrix.shape == (len(vocabulary), 100)
    share = re.search(r"words \(([0-9.]+)%\)", embeddings.notice)
    assert float(share[1]) > 95
    assert torch.isfinite(embeddings.matrix).all()
    rows = vocabulary.index
    similar = torch.cosine_similarity(
        embeddings.matrix[rows["man"]], embeddings.matrix[rows["woman"]], dim=0
    )
    assert similar > 0.7
