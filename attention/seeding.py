"""Random draws from seeds alone: there is no state to save, and every process draws the same."""

import hashlib

import torch
from torch import Tensor
from torch.nn.functional import pad

from attention.cache import cached

# Shape letters: R restarts, K components.


def training_draw(seed: int, step: int, k_max: int) -> tuple[int, Tensor]:
    """K uniform in 1…k_max and uniforms (1, k_max, 2) for its means, from (seed, step) alone."""
    num_components = 1 + mixed_seed("components", seed, step) % k_max
    return num_components, draw_uniforms((1, k_max, 2), "means", seed, step)


@cached
def restart_draw(
    seed: int, k_max: int, num_restarts: int, device: torch.device
) -> tuple[tuple[int, ...], Tensor]:
    """The size k of each of R starts at test time, and uniforms (R, k_max, 2) for their means.

    One start for k = 1, whose fit does not depend on it, and num_restarts for each k = 2…k_max.
    Those of one k come from (seed, k) alone: they are the same for every sample and every k_max.
    """
    drawn = {
        k: draw_uniforms((1 if k == 1 else num_restarts, k, 2), "restarts", seed, k)
        for k in range(1, k_max + 1)
    }
    sizes = tuple(k for k, uniforms in drawn.items() for _ in uniforms)
    uniforms_RK2 = torch.cat(
        [pad(uniforms, (0, 0, 0, k_max - k), value=0.5) for k, uniforms in drawn.items()]
    )
    return sizes, uniforms_RK2.to(device)


def draw_uniforms(shape: tuple[int, ...], *numbers: int | str) -> Tensor:
    """Uniforms in [0, 1) on the CPU, from the numbers alone."""
    generator = torch.Generator("cpu").manual_seed(mixed_seed(*numbers))
    return torch.rand(shape, generator=generator, dtype=torch.float64, device="cpu")


def mixed_seed(*numbers: int | str) -> int:
    """63 bits that mix all the numbers, so that neighbouring steps are unrelated."""
    plain = [number if isinstance(number, str) else int(number) for number in numbers]
    digest = hashlib.blake2b(repr(plain).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1
