"""The residual networks that make grid features: their layout, and the pixels they expect."""

from dataclasses import dataclass

RELEASE = "https://dl.fbaipublicfiles.com/grid-feats-vqa"
NUM_FEATURES = 2048  # of every network's last stage
MEAN_BGR = (103.530, 116.280, 123.675)


@dataclass(frozen=True)
class Architecture:
    """One network; `mean` and `std` are of pixels from 0 to 255, in the order of `channels`."""

    name: str  # as grid-feats-vqa and a store's manifest spell it
    blocks: tuple[int, int, int, int]  # of the four stages
    mean: tuple[float, ...]
    std: tuple[float, ...]
    channels: str = "BGR"
    groups: int = 1
    width: int = 64  # channels of a group in the first stage's 3×3 convolutions
    stride_in_1x1: bool = False  # where a stage halves its grid: the first convolution or the 3×3
    detectron: bool = True  # its checkpoints have detectron2's keys, or else torchvision's

    @property
    def address(self) -> str:
        """Where the checkpoint of a grid-feats network is published."""
        return f"{RELEASE}/{self.name}/{self.name}.pth"


ARCHITECTURES = {
    "r50": Architecture("R-50", (3, 4, 6, 3), MEAN_BGR, (1.0, 1.0, 1.0), stride_in_1x1=True),
    "x101": Architecture(
        "X-101", (3, 4, 23, 3), MEAN_BGR, (57.375, 57.120, 58.395), groups=32, width=8
    ),
    "x152": Architecture("X-152", (3, 8, 36, 3), MEAN_BGR, (1.0, 1.0, 1.0), groups=32, width=8),
    "resnet50": Architecture(
        "resnet50",
        (3, 4, 6, 3),
        mean=(123.675, 116.280, 103.530),  # 255 times what torchvision has for pixels up to 1
        std=(58.395, 57.120, 57.375),
        channels="RGB",
        detectron=False,
    ),
}


def find_architecture(name: str) -> Architecture | None:
    """The network of that name in any spelling, as x152 and X-152; None when there is none."""
    return ARCHITECTURES.get(name.lower().replace("-", ""))


def official_name(name: str) -> str:
    """One spelling for every network that is known here, so that its stores fit together."""
    architecture = find_architecture(name)
    return name if architecture is None else architecture.name
