"""The data of a training run: files that belong together, features and words that cover them."""

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from data.features.reader import FeatureStore
from data.text.answer_list import AnswerList
from data.text.tokenizer import tokenize
from data.text.vocabulary import Vocabulary
from data.text.word_lists import Words, build_words
from data.vqa.data_folder import DataFolder
from data.vqa.inventory import explain_store
from data.vqa.json_entries import name_ids
from data.vqa.normalisation import normalise_answer
from data.vqa.questions import Annotation, Questions, match_annotations
from scripts.doctor.finding import Finding, catch, ok, problem, warning

FEWEST_WORDS, FEWEST_ANSWERS = 0.9, 0.8  # shares below which something is likely wrong


@dataclass
class Dataset:
    """A data folder, and what was found valid in it."""

    folder: DataFolder
    name: str
    questions: dict[str, Questions] = field(default_factory=dict)
    annotations: dict[str, list[Annotation]] = field(default_factory=dict)
    stores: dict[str, FeatureStore] = field(default_factory=dict)
    words: Words | None = None

    @property
    def image_bytes(self) -> float:
        """Of the features of an image, on average; infinite while there is no store."""
        num_images = sum(len(store) for store in self.stores.values())
        num_bytes = sum(store.header.data_bytes for store in self.stores.values())
        return num_bytes / num_images if num_images else math.inf

    def close(self) -> None:
        for store in self.stores.values():
            store.close()


def check_dataset(
    dataset: Dataset, train_split: str, val_split: str, reader: str, min_answer_count: int
) -> Iterator[Finding]:
    """Every file that training reads, and, as warnings, what submitting needs later."""
    root, name = dataset.folder.root, dataset.name
    if not root.is_dir():
        text = f"there is no data in {root} yet"
        if name == "shapes":
            yield warning(text, "run make data; make train does so by itself")
        else:
            yield problem(text, f"run make data DATA={name} (docs/data.md)")
        return
    layout = dataset.folder.layout
    train_split, extra = layout.divide_training(train_split)
    split_names = layout.split_names
    asked = (each for name in extra for each in layout.extra[name].splits)
    for split in dict.fromkeys((*split_names(train_split), *asked, *split_names(val_split))):
        advice = f"put the official files into {root} (docs/data.md); make data DATA={name}"
        yield from catch(check_questions(dataset, split), advice)
        advice = "copy or make the store again (docs/data.md)"
        yield from catch(check_store(dataset, split, reader), advice)
    for name in extra:
        advice = "put the right files there, or leave it out of train_split"
        yield from catch(check_extra(dataset, name), advice)
    yield from catch(check_backbones(dataset), "make all stores with one backbone and one resize")
    advice = f"delete vocabulary.json and answers.json and run make data DATA={name}"
    yield from catch(check_words(dataset, split_names(train_split), min_answer_count), advice)
    yield from catch(check_test(dataset), "make export needs it; training does not")


def check_questions(dataset: Dataset, split: str) -> Iterator[Finding]:
    """Questions and annotations of a split that belong together."""
    folder = dataset.folder
    questions = dataset.questions[split] = folder.read_questions(split)
    dataset.annotations[split] = folder.match_annotations(split)
    images = len(np.unique(questions.image_ids))
    yield ok(f"{split}: {len(questions):,} questions about {images:,} images, all annotated")


def check_store(dataset: Dataset, split: str, reader: str) -> Iterator[Finding]:
    """The feature store of a split: valid, and with the image of every question."""
    path = dataset.folder.store(split)
    if not path.is_file():
        asked = dataset.questions.get(split)
        image_ids = np.zeros(0, np.int64) if asked is None else np.unique(asked.image_ids)
        advice = explain_store(dataset.folder, split, image_ids).partition("missing; ")[2]
        yield problem(f"{split}: there is no feature store {path}", advice)
        return
    store = dataset.stores[split] = FeatureStore(path, reader)
    yield ok(
        f"{split}: {path}, {len(store):,} images of {store.manifest.describe()}, "
        f"{store.header.file_bytes / 1e9:.2f} GB"
    )
    yield from check_coverage(dataset, split, store)


def check_coverage(dataset: Dataset, split: str, store: FeatureStore) -> Iterator[Finding]:
    """Every question's image is in the store."""
    if split not in dataset.questions:
        return
    image_ids = np.unique(dataset.questions[split].image_ids)
    absent = image_ids[store.positions(image_ids) < 0]
    if len(absent):
        yield problem(
            f"{split}: {store.path} lacks {len(absent):,} of {len(image_ids):,} images: "
            f"{name_ids(absent.tolist())}",
            "make the store again from a folder that has them all, or remove their questions",
        )
    else:
        yield ok(f"{split}: every question's image has features")


def check_extra(dataset: Dataset, name: str) -> Iterator[Finding]:
    """Extra questions to train on: annotated, and with the image of every question."""
    questions, annotations = dataset.folder.read_extra(name)
    match_annotations(questions, annotations)
    image_ids = np.unique(questions.image_ids)
    stores = dataset.stores.values()
    there = [store.image_ids for store in stores]
    absent = np.setdiff1d(image_ids, np.concatenate(there)) if there else image_ids
    yield ok(f"{name}: {len(questions):,} questions about {len(image_ids):,} images, all annotated")
    if len(absent):
        names = ", ".join(str(store.path) for store in stores)
        yield problem(
            f"{name}: {len(absent):,} of its images have no features in {names or 'any store'}: "
            f"{name_ids(absent.tolist())}",
            "make the stores again from folders that have them all",
        )


def check_backbones(dataset: Dataset) -> Iterator[Finding]:
    """Stores that are used together come from one backbone; nothing to report where they do."""
    stores = list(dataset.stores.values())
    for store in stores[1:]:
        store.manifest.check_alike(store.path, stores[0].manifest, stores[0].path)
    yield from ()


def check_words(
    dataset: Dataset, train: tuple[str, ...], min_answer_count: int
) -> Iterator[Finding]:
    """Vocabulary and answers: there or buildable, and covering the questions."""
    folder = dataset.folder
    if not all(split in dataset.annotations for split in train):
        return  # reported already
    if folder.vocabulary.is_file() and folder.answers.is_file():
        words = Words(Vocabulary.load(folder.vocabulary), AnswerList.load(folder.answers))
        state = "kept in vocabulary.json and answers.json"
    else:
        words, state = build_words(folder, min_answer_count), "to be built at the start"
    dataset.words = words
    yield ok(f"{len(words.vocabulary):,} words and {len(words.answers):,} answers, {state}")
    for split, questions in dataset.questions.items():
        share = share_known(words.vocabulary, questions.texts)
        text = f"{split}: {share:.2%} of the words in questions are known"
        advice = "the vocabulary is of other questions: delete vocabulary.json?"
        yield ok(text) if share >= FEWEST_WORDS else warning(text, advice)
    for split in train:
        share = share_answered(words.answers, dataset.annotations[split])
        text = f"{split}: {share:.2%} of the questions have an answer in the list"
        advice = "delete answers.json and run make data with a smaller data.min_answer_count"
        yield ok(text) if share >= FEWEST_ANSWERS else warning(text, advice)


def share_known(vocabulary: Vocabulary, texts: list[str]) -> float:
    """The share of all words of the texts that the vocabulary has."""
    counts = Counter(token for text in texts for token in tokenize(text))
    known = sum(count for token, count in counts.items() if token in vocabulary.index)
    return known / max(counts.total(), 1)


def share_answered(answers: AnswerList, annotations: list[Annotation]) -> float:
    """The share of questions with at least one of the ten answers in the list."""
    given = {answer for annotation in annotations for answer in annotation.answers}
    listed = {answer for answer in given if normalise_answer(answer) in answers.index}
    answered = sum(not listed.isdisjoint(annotation.answers) for annotation in annotations)
    return answered / max(len(annotations), 1)


def check_test(dataset: Dataset) -> Iterator[Finding]:
    """The questions and features that make export will need."""
    if "test" not in dataset.folder.layout.subtypes:
        return
    questions, store = dataset.folder.questions("test"), dataset.folder.store("test")
    missing = [str(path) for path in (questions, store) if not path.is_file()]
    if not missing:
        dataset.questions["test"] = dataset.folder.read_questions("test")
        with FeatureStore(store) as opened:
            yield from check_coverage(dataset, "test", opened)
    elif dataset.name == "vqa_v2":
        text = f"test: {' and '.join(missing)} missing"
        yield warning(text, "make export will need it; training does not")
