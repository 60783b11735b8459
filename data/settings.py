"""What configs/data sets: which dataset, where it is, and how it is read."""

from dataclasses import dataclass
from typing import Annotated

Count = Annotated[int, ">= 1"]


@dataclass(frozen=True, kw_only=True)
class Data:
    """The settings of a dataset; their ranges are checked by scripts/cli/settings.py."""

    name: str
    root: str
    layout: str = "vqa_v2"
    question_length: Count = 14
    min_answer_count: Count = 9
    # shapes
    seed: Annotated[int, ">= 0 and < 2^63"] = 0
    num_workers: Count = 2
    force: bool = False
    # vqa_v2
    url: str = ""
    human_attention: bool = False
    human_attention_url: str = ""
    glove: bool = False
    glove_url: str = ""
    pause: Annotated[float, ">= 0"] = 1.0
