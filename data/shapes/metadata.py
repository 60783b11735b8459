"""Metadata of the questions of `shapes`: their template, and the objects that decide them."""

from dataclasses import dataclass

from data.io.atomic_files import read_json
from data.vqa.data_folder import DataFolder


@dataclass(frozen=True)
class QuestionMetadata:
    """What is known of a question beyond its words."""

    template: str
    num_objects: int  # that decide it


def read_question_metadata(folder: DataFolder) -> dict[int, QuestionMetadata]:
    """The metadata of each question id; empty for a dataset without such a file."""
    path = folder.metadata
    if not path.is_file():
        return {}
    content = read_json(path)
    try:
        return {
            int(number): QuestionMetadata(str(each["template"]), len(each["objects"]))
            for number, each in content["questions"].items()
        }
    except (KeyError, TypeError, ValueError, AttributeError):
        raise ValueError(
            f"{path} must have, under 'questions', the 'template' and the 'objects' of each "
            "question id; make the dataset again, or delete the file to do without it"
        ) from None
