"""What lies behind the questions of `shapes`: how many objects each one rests on."""

from data.files import read_json
from data.splits import Folder


def count_objects(folder: Folder) -> dict[int, int] | None:
    """The number of objects that decide each question id; None for a dataset that does not say."""
    path = folder.root / "shapes_metadata.json"
    if not path.is_file():
        return None
    content = read_json(path)
    try:
        return {int(number): len(each["objects"]) for number, each in content["questions"].items()}
    except (KeyError, TypeError, ValueError, AttributeError):
        raise ValueError(
            f"{path} must have, under 'questions', the 'objects' of each question id; make the "
            "dataset anew, or delete the file to do without it"
        ) from None
