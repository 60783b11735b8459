"""From a question to its words."""

DROPPED = ".,'!?\"()*#:;"
SEPARATORS = "-/"
TABLE = str.maketrans(dict.fromkeys(DROPPED, "") | dict.fromkeys(SEPARATORS, " "))


def tokenize(question: str) -> list[str]:
    """The lower-case words of a question; an empty list when it has none."""
    return question.lower().translate(TABLE).split()
