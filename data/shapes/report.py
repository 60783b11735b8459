"""A summary of the dataset that was made."""

from collections import Counter

from data.io.atomic_files import read_json
from data.text.answer_list import AnswerList
from data.vqa.data_folder import DataFolder


def describe_dataset(folder: DataFolder) -> str:
    """Sizes, templates, answers, and the share of questions about several far-apart objects."""
    questions = read_json(folder.metadata)["questions"]
    several = sum(each["far_apart"] for each in questions.values())
    templates = Counter(each["template"] for each in questions.values())
    lines = []
    for split in folder.layout.subtypes:
        asked = folder.read_questions(split)
        lines.append(
            f"{split}: {len(asked):,} questions about {len(set(asked.image_ids)):,} images"
        )
    types = Counter(each.answer_type for each in folder.read_annotations("train"))
    shares = ", ".join(f"{name} {100 * n / types.total():.0f} %" for name, n in types.items())
    lines.append(
        f"{len(templates)} templates, {len(AnswerList.load(folder.answers))} answers ({shares}); "
        f"{100 * several / len(questions):.0f} % of the questions depend on several distant objects"
    )
    return "\n".join(lines)
