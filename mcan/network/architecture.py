"""From sizes to a network: what configs/model sets, and the numbers that the data decides."""

from collections.abc import Mapping
from dataclasses import fields

from torch import Tensor

from attention import Head
from mcan.network.model import MCAN, Sizes
from mcan.network.settings import Architecture


def build_model(
    architecture: Architecture, head: Head, *, num_words: int, num_answers: int, num_features: int
) -> MCAN:
    """The network for the data's numbers of words, answers and features per cell.

    Features that are no more than the principal components asked for are taken as they are.
    """
    chosen = {each.name: getattr(architecture, each.name) for each in fields(Architecture)}
    dropout = chosen.pop("dropout")
    chosen["pca"] = architecture.pca if architecture.pca < num_features else 0
    return MCAN(Sizes(num_words, num_answers, num_features, **chosen), head, dropout)


def load_weights(model: MCAN, weights: Mapping[str, Tensor], owner: str) -> None:
    """Fill in weights; those of another architecture raise an error that names their owner."""
    try:
        model.load_state_dict(weights)
    except RuntimeError:
        sizes = ", ".join(f"{name} {value}" for name, value in vars(model.sizes).items())
        raise ValueError(
            f"{owner} has another architecture: its weights do not fit a model of {sizes}"
        ) from None


def infer_sizes(weights: Mapping[str, Tensor], num_heads: int) -> Sizes:
    """Every size of the network but the number of heads, which leaves no trace in the weights."""
    try:
        words, embedding = weights["embedding.weight"].shape
        hidden, inputs = weights["project_features.weight"].shape
        reduction = weights.get("pca.weight")  # (pca, features)
        pca, features = (0, inputs) if reduction is None else reduction.shape
        answers, output = weights["classify.weight"].shape
        glimpses, pooling = weights["pool_image.score_network.score.weight"].shape
    except (KeyError, ValueError) as error:
        raise ValueError(f"these weights are not MCAN's: {error} is missing or misshapen") from None
    if glimpses != 1:
        raise ValueError(f"this MCAN has {glimpses} glimpses per pooling; only one is supported")
    layers = len({name.split(".")[1] for name in weights if name.startswith("encoder.")})
    sizes = words, answers, features, embedding, hidden, layers, num_heads, pooling, output, pca
    return Sizes(*sizes)
