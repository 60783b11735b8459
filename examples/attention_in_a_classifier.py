"""A multimodal attention head in a classifier of one's own, in place of global average pooling.

    .venv/bin/python examples/attention_in_a_classifier.py attended.png

It needs torch, matplotlib and the package `attention`, nothing else of this project. An image has
two crosses, far from each other, among pluses of the same size. The crosses have two of three
colours, and the class is the third: whoever looks at one cross alone cannot tell.
"""

from argparse import ArgumentParser, RawDescriptionHelpFormatter

import torch
from torch import Tensor, nn

import attention

SIDE, MARK = 48, 5  # pixels of an image and of a mark
NUM_COLORS = 3  # and classes
PLUS = torch.zeros(MARK, MARK)
PLUS[MARK // 2], PLUS[:, MARK // 2] = 1.0, 1.0
CROSS = torch.maximum(torch.eye(MARK), torch.eye(MARK).flip(0))


def draw_images(count: int, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Images (B, 3, S, S), their classes (B,), and the centres (B, 2, 2) of the crosses."""
    images = 0.1 * torch.randn(count, 3, SIDE, SIDE, generator=generator)
    classes = torch.randint(NUM_COLORS, (count,), generator=generator)
    color = torch.randint(NUM_COLORS, (count, 6), generator=generator)
    side = torch.randint(2, (count,), generator=generator)  # which of the two colours is left
    color[:, 0], color[:, 1] = (classes + 1 + side) % 3, (classes + 2 - side) % 3
    corners = torch.randint(SIDE - MARK, (count, 6, 2), generator=generator)
    corners[:, 0, 1] //= 4  # one cross at the left edge …
    corners[:, 1, 1] = SIDE - MARK - corners[:, 1, 1] // 4  # … and one at the right
    for image, places, channels in zip(images, corners.tolist(), color.tolist(), strict=True):
        for n, ((row, column), channel) in enumerate(zip(places, channels, strict=True)):
            image[channel, row : row + MARK, column : column + MARK] += CROSS if n < 2 else PLUS
    return images, classes, corners[:, :2] + MARK // 2


class Classifier(nn.Module):
    """Convolutions, a pooling of their cells, a linear layer."""

    def __init__(self, head: attention.Head, channels: int = 16) -> None:
        super().__init__()
        self.look = self.convolve(1, channels)  # grey levels: where to look is a question of shape
        self.score = nn.Conv2d(channels, 1, 1)
        self.describe = self.convolve(3, channels)  # colours: what is there
        self.head = head  # it has no parameters of its own
        self.classify = nn.Linear(channels, NUM_COLORS)

    def convolve(self, inputs: int, outputs: int) -> nn.Module:
        """A layer from pixels to cells of 4 × 4 pixels."""
        return nn.Sequential(nn.Conv2d(inputs, outputs, 5, padding=2), nn.ReLU(), nn.MaxPool2d(4))

    def forward(self, images: Tensor, step: int = 0) -> tuple[Tensor, attention.AttentionOutput]:
        """Images (B, 3, S, S) -> logits (B, 3), and what was attended to."""
        scores = self.score(self.look(images.sum(1, keepdim=True))).flatten(1)  # (B, L)
        maps = self.describe(images)  # (B, D, h, w)
        height, width = maps.shape[2:]
        grid = attention.Grid.of([(height, width)] * len(maps), device=maps.device)
        values = maps.flatten(2).transpose(1, 2)  # (B, L, D); global average: values.mean(1)
        attended = self.head(scores, values, grid, step=step)
        return self.classify(attended.context), attended


def train(model: Classifier, num_steps: int) -> None:
    """Adam on images that are drawn as they are needed; `step` seeds the head's random choices."""
    generator = torch.Generator().manual_seed(0)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    model.train()  # the head draws the number of components
    for step in range(num_steps):
        images, classes, _ = draw_images(32, generator)
        logits, _ = model(images, step)
        optimizer.zero_grad()
        nn.functional.cross_entropy(logits, classes).backward()
        optimizer.step()


def draw_attention(images: Tensor, attended: attention.AttentionOutput, path: str) -> None:
    """Write a figure: every image under the density of its mixture, and its components' means."""
    from matplotlib import pyplot

    mixture = attended.mixture
    assert mixture is not None  # it would be for discrete attention
    axis = (torch.arange(SIDE, dtype=torch.float64) + 0.5) / SIDE
    points = torch.cartesian_prod(axis, axis)  # (P, 2): row, column
    density = mixture.density(points)[:, 0].reshape(-1, SIDE, SIDE)
    figure, axes = pyplot.subplots(1, len(images), figsize=(3 * len(images), 3.2))
    for n, place in enumerate(axes):
        count = int(mixture.num_components[n, 0])
        means = (SIDE * mixture.mu[n, 0, :count] - 0.5).numpy()
        place.imshow(images[n].permute(1, 2, 0).clamp(0, 1).numpy())
        place.imshow(density[n].sqrt().numpy(), cmap="gray", alpha=0.35)
        place.scatter(means[:, 1], means[:, 0], s=400, facecolors="none", edgecolors="white")
        place.set_title(f"K* = {count}")
        place.axis("off")
    figure.savefig(path, bbox_inches="tight")
    pyplot.close(figure)


def main(path: str, num_steps: int = 120) -> Classifier:
    """Train, test on new images, draw four of them; the trained model."""
    torch.manual_seed(0)
    head = attention.build("multimodal", k_max=2, lam=1.0, floor="cell", init="weighted")
    model = Classifier(head)
    train(model, num_steps)
    images, classes, _ = draw_images(500, torch.Generator().manual_seed(1))
    model.eval()  # every number of components is fitted, λ selects one
    with torch.no_grad():
        logits, _ = model(images)
        draw_attention(images[:4], model(images[:4])[1], path)
    accuracy = (logits.argmax(1) == classes).double().mean()
    print(f"{accuracy:.1%} of new images are classified correctly; four are drawn in {path}")
    return model


if __name__ == "__main__":
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("path", nargs="?", default="attended.png", help="the figure to write")
    main(parser.parse_args().path)
