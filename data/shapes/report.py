"""A summary of the dataset that was made."""

from collections import Counter

from data.answers import AnswerList
from data.files import read_json
from data.questions import load_annotations, load_questions
from data.splits import Folder


def describe_dataset(folder: Folder) -> str:
    """Sizes, templates, answers, and the share of questions about several far-apart objects."""
    questions = read_json(folder.root / "shapes_metadata.json")["questions"]
    several = sum(each["far_apart"] for each in questions.values())
    templates = Counter(each["template"] for each in questions.values())
    lines = []
    for split in ("train", "val", "test", "test-dev"):
        asked = load_questions([folder.questions(split)])
        lines.append(
            f"{split}: {len(asked):,} questions about {len(set(asked.image_ids)):,} images"
        )
    types = Counter(each.answer_type for each in load_annotations(folder.annotation_files("train")))
    shares = ", ".join(f"{name} {100 * n / types.total():.0f} %" for name, n in types.items())
    lines.append(
        f"{len(templates)} templates, {len(AnswerList.load(folder.answers))} answers ({shares}); "
        f"{100 * several / len(questions):.0f} % of the questions rest on several objects far apart"
    )
    return "\n".join(lines)
