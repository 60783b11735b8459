"""What lies behind the questions of `shapes`: their template, and the objects they rest on."""

from dataclasses import dataclass

from data.files import read_json
from data.splits import Folder


@dataclass(frozen=True)
class Background:
    """What is known of a question beyond its words."""

    template: str
    num_objects: int  # that decide it


def read_backgrounds(folder: Folder) -> dict[int, Background]:
    """By question id; empty for a dataset that does not say."""
    path = folder.root / "shapes_metadata.json"
    if not path.is_file():
        return {}
    content = read_json(path)
    try:
        return {
            int(number): Background(str(each["template"]), len(each["objects"]))
            for number, each in content["questions"].items()
        }
    except (KeyError, TypeError, ValueError, AttributeError):
        raise ValueError(
            f"{path} must have, under 'questions', the 'template' and the 'objects' of each "
            "question id; make the dataset anew, or delete the file to do without it"
        ) from None
