"""Weights under MCAN's own parameter names, of mcan-vqa and of openvqa, loaded into this model."""

import re
from collections.abc import Mapping

from torch import Tensor

from attention import build
from mcan.network.architecture import infer_sizes
from mcan.network.model import MCAN

# Where a published name starts with the left, ours starts with the right.
PREFIXES = {
    "img_feat_linear": "project_features",
    "frcnfeat_linear": "project_features",
    "gridfeat_linear": "project_features",
    "adapter.frcn_linear": "project_features",
    "adapter.grid_linear": "project_features",
    "attflat_img": "pool_image",
    "attflat_lang": "pool_question",
    "proj_norm": "norm",
    "proj": "classify",
    "backbone.enc_list": "encoder",
    "backbone.dec_list": "decoder",
}
PARTS = {
    "linear_q": "query",
    "linear_k": "key",
    "linear_v": "value",
    "linear_merge": "merge",
    "mhatt": "attention",
    "mhatt1": "self_attention",
    "mhatt2": "guided_attention",
    "ffn.mlp.fc.linear": "feed_forward.0",
    "ffn.mlp.linear": "feed_forward.3",
    "mlp.fc.linear": "score_network.hidden",
    "mlp.linear": "score_network.score",
    "a_2": "weight",
    "b_2": "bias",
}
NORMS = {
    "encoder": {"norm1": "after_attention.norm", "norm2": "after_feed_forward.norm"},
    "decoder": {
        "norm1": "after_self_attention.norm",
        "norm2": "after_guided_attention.norm",
        "norm3": "after_feed_forward.norm",
    },
}
BOX_FEATURES = ("spatfeat_linear", "adapter.bbox_linear")


def from_published(
    state_dict: Mapping[str, Tensor],
    num_heads: int = 8,
    attention: str = "discrete",
    dropout: float = 0.1,
    **head_options: object,
) -> MCAN:
    """An MCAN with the published weights; every size is read off them but the number of heads."""
    renamed = rename_all(state_dict)
    sizes = infer_sizes(renamed, num_heads)
    model = MCAN(sizes, build(attention, **head_options), dropout)
    check_weights(renamed, model.state_dict())
    model.to(renamed["embedding.weight"].dtype)
    model.load_state_dict(renamed)
    return model


def check_weights(found: Mapping[str, Tensor], expected: Mapping[str, Tensor]) -> None:
    """Raise, naming a parameter, where the found ones are not those that are expected."""
    for names, what in (
        (expected.keys() - found.keys(), "lack"),
        (found.keys() - expected.keys(), "also hold"),
    ):
        if names:
            raise ValueError(f"these weights are not MCAN's: they {what} {min(names)}")
    for name, tensor in found.items():
        if tensor.shape != expected[name].shape or not tensor.is_floating_point():
            raise ValueError(
                f"these weights are not MCAN's: {name} has the shape {tuple(tensor.shape)} and "
                f"holds {tensor.dtype}, expected floats of shape {tuple(expected[name].shape)}"
            )


def rename_all(state_dict: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Our names for all of the published ones, LayerNorm's gain rescaled."""
    state = {name.removeprefix("module."): tensor for name, tensor in state_dict.items()}
    boxes = [name for name in state if name.startswith(BOX_FEATURES)]
    if boxes:
        raise ValueError(f"this MCAN also reads bounding boxes ({boxes[0]}); ours does not")
    renamed = {}
    for name, tensor in state.items():
        # MCAN's norm divides by the unbiased deviation, torch's by the biased one.
        size = tensor.shape[-1] if tensor.ndim else 1
        gain = ((size - 1) / size) ** 0.5 if name.endswith("a_2") else 1.0
        if rename(name) in renamed:
            raise ValueError(f"this MCAN reads two kinds of features ({name} is the second)")
        renamed[rename(name)] = gain * tensor if name.endswith("a_2") else tensor
    return renamed


def rename(name: str) -> str:
    """Our name of one published parameter."""
    for published in sorted(PREFIXES, key=len, reverse=True):
        if name.startswith(f"{published}."):
            name = PREFIXES[published] + name.removeprefix(published)
            break
    for published, ours in NORMS.get(name.split(".")[0], {}).items():
        name = name.replace(f".{published}.", f".{ours}.")
    for published in sorted(PARTS, key=len, reverse=True):
        name = re.sub(rf"(?<=\.){re.escape(published)}(?=\.|$)", PARTS[published], name)
    return name
