"""The data of a training: files that belong together, features and words that cover them."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from data.answers import AnswerList
from data.custom import explain_store
from data.entries import name_ids
from data.normalise import normalise_answer
from data.questions import (
    Annotation,
    Questions,
    load_annotations,
    load_questions,
    match_annotations,
)
from data.splits import Folder, split_names
from data.store import FeatureStore
from data.tokenizer import tokenize
from data.vocabulary import Vocabulary
from data.words import Words, build_words
from scripts.doctor.finding import Finding, catch, doubtful, good, wrong

FEWEST_WORDS, FEWEST_ANSWERS = 0.9, 0.8  # shares below which something is likely amiss


@dataclass
class Dataset:
    """A data folder, and what was found sound in it."""

    folder: Folder
    name: str
    questions: dict[str, Questions] = field(default_factory=dict)
    annotations: dict[str, list[Annotation]] = field(default_factory=dict)
    stores: dict[str, FeatureStore] = field(default_factory=dict)
    words: Words | None = None

    def close(self) -> None:
        for store in self.stores.values():
            store.close()


def check_dataset(
    dataset: Dataset, train_split: str, val_split: str, reader: str, more_than: int
) -> Iterator[Finding]:
    """Every file that the training reads, and, as warnings, what submitting needs later."""
    root = dataset.folder.root
    if not root.is_dir():
        yield explain_absence(dataset)
        return
    needed = tuple(dict.fromkeys((*split_names(train_split), *split_names(val_split))))
    for split in needed:
        yield from catch(
            lambda split=split: check_questions(dataset, split),  # type: ignore[misc]
            f"put the official files into {root} (docs/data.md); make data DATA={dataset.name}",
        )
        yield from catch(
            lambda split=split: check_store(dataset, split, reader),  # type: ignore[misc]
            "copy or make the store again (docs/data.md)",
        )
    yield from check_agreement(dataset)
    yield from catch(
        lambda: check_words(dataset, split_names(train_split), more_than),
        f"delete vocabulary.json and answers.json and run make data DATA={dataset.name}",
    )
    yield from check_test(dataset)


def explain_absence(dataset: Dataset) -> Finding:
    """What to do where there is no data at all."""
    text = f"there is no data in {dataset.folder.root} yet"
    if dataset.name == "shapes":
        return doubtful(text, "run make data; make train does so by itself")
    return wrong(text, f"run make data DATA={dataset.name} (docs/data.md)")


def check_questions(dataset: Dataset, split: str) -> Iterator[Finding]:
    """Questions and annotations of a split that belong together."""
    folder = dataset.folder
    questions = load_questions([folder.questions(split)])
    if not len(questions):
        raise ValueError(f"{folder.questions(split)} holds no questions")
    dataset.questions[split] = questions
    matched = match_annotations(questions, load_annotations([folder.annotations(split)]))
    dataset.annotations[split] = matched
    images = len(np.unique(questions.image_ids))
    yield good(f"{split}: {len(questions):,} questions about {images:,} images, all annotated")


def check_store(dataset: Dataset, split: str, reader: str) -> Iterator[Finding]:
    """The feature store of a split: sound, and with the image of every question."""
    path = dataset.folder.store(split)
    if not path.is_file():
        advice = explain_store(dataset.folder, split, 0).partition("missing; ")[2]
        yield wrong(f"{split}: there is no feature store {path}", advice)
        return
    store = dataset.stores[split] = FeatureStore(path, reader)
    manifest = store.manifest
    resize = "any size" if manifest.resize is None else "resize {}/{}".format(*manifest.resize)
    yield good(
        f"{split}: {path}, {manifest.backbone}, {resize}, {len(store):,} images of "
        f"{store.num_features} features a cell, {store.header.file_bytes / 1e9:.2f} GB"
    )
    yield from check_coverage(dataset, split, store)


def check_coverage(dataset: Dataset, split: str, store: FeatureStore) -> Iterator[Finding]:
    """Every question's image is in the store."""
    if split not in dataset.questions:
        return
    image_ids = np.unique(dataset.questions[split].image_ids)
    absent = image_ids[store.positions(image_ids) < 0]
    if len(absent):
        yield wrong(
            f"{split}: {store.path} lacks {len(absent):,} of {len(image_ids):,} images: "
            f"{name_ids(absent.tolist())}",
            "make the store again from a folder that has them all",
        )
    else:
        yield good(f"{split}: every question's image has features")


def check_agreement(dataset: Dataset) -> Iterator[Finding]:
    """Stores that are used together come from one backbone."""
    stores = list(dataset.stores.values())

    def check() -> Iterator[Finding]:
        for store in stores[1:]:
            first = stores[0].manifest
            store.manifest.require(store.path, first.backbone, first.resize, first.num_features)
        yield from ()

    return catch(check, "make all stores with one backbone and one resize")


def check_words(dataset: Dataset, train: tuple[str, ...], more_than: int) -> Iterator[Finding]:
    """Vocabulary and answers: there or buildable, and covering the questions."""
    folder = dataset.folder
    if not all(split in dataset.annotations for split in train):
        return  # said already
    if folder.vocabulary.is_file() and folder.answers.is_file():
        words = Words(Vocabulary.load(folder.vocabulary), AnswerList.load(folder.answers))
        state = "kept in vocabulary.json and answers.json"
    else:
        words, state = build_words(folder, more_than), "to be built at the start"
    dataset.words = words
    yield good(f"{len(words.vocabulary):,} words and {len(words.answers):,} answers, {state}")
    for split, questions in dataset.questions.items():
        share = share_known(words.vocabulary, questions.texts)
        text = f"{split}: {share:.2%} of the words in questions are known"
        if share < FEWEST_WORDS:
            yield doubtful(text, "the vocabulary is of other questions: delete vocabulary.json?")
        else:
            yield good(text)
    for split in train:
        share = share_answered(words.answers, dataset.annotations[split])
        text = f"{split}: {share:.2%} of the questions have an answer in the list"
        if share < FEWEST_ANSWERS:
            yield doubtful(text, "data.answers_more_than=<smaller> keeps rarer answers")
        else:
            yield good(text)


def share_known(vocabulary: Vocabulary, texts: list[str]) -> float:
    """The share of all words of the texts that the vocabulary has."""
    known = total = 0
    for text in texts:
        tokens = tokenize(text)
        total += len(tokens)
        known += sum(token in vocabulary.index for token in tokens)
    return known / max(total, 1)


def share_answered(answers: AnswerList, annotations: list[Annotation]) -> float:
    """The share of questions with at least one of the ten answers in the list."""
    given = {answer for annotation in annotations for answer in annotation.answers}
    listed = {answer for answer in given if normalise_answer(answer) in answers.index}
    answered = sum(not listed.isdisjoint(annotation.answers) for annotation in annotations)
    return answered / max(len(annotations), 1)


def check_test(dataset: Dataset) -> Iterator[Finding]:
    """What make export will need; a training does without."""
    folder = dataset.folder
    lacking = [
        path for path in (folder.questions("test"), folder.store("test")) if not path.is_file()
    ]
    if lacking and dataset.name == "vqa_v2":
        names = " and ".join(map(str, lacking))
        yield doubtful(f"test: {names} missing", "make export will need it; a training does not")
    elif not lacking:

        def check() -> Iterator[Finding]:
            questions = load_questions([folder.questions("test")])
            dataset.questions["test"] = questions
            with FeatureStore(folder.store("test")) as store:
                yield from check_coverage(dataset, "test", store)

        yield from catch(check, "make export needs it; a training does not")
