import importlib
import textwrap
from typing import Any

import pytest
import torch

import attention
from attention.heads import registry


@pytest.fixture(autouse=True)
def leave_the_registry_as_it_was(monkeypatch):
    monkeypatch.setattr(registry, "_heads", dict(registry._heads))


def test_the_three_heads_of_the_paper_are_available():
    assert attention.available() == ("discrete", "multimodal", "unimodal")


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("softmax", {}, "no attention head 'softmax'; there are discrete, multi"),
        ("multimodal", {"lambda": 5}, "'multimodal' has no option 'lambda'; its options are k_m"),
    ],
)
def test_an_unknown_name_or_option_lists_what_there_is(name, options, message):
    with pytest.raises(ValueError, match=message):
        attention.build(name, **options)


def test_an_option_without_a_default_must_be_given():
    @attention.register("powered")
    class Powered(registry.find("discrete")):
        def __init__(self, power: float, **options: Any) -> None:
            super().__init__(**options)
            self.power = power

    with pytest.raises(ValueError, match="'powered' needs its option 'power'"):
        attention.build("powered")
    assert attention.build("powered", power=2.0).power == 2.0


def test_a_name_is_registered_once_and_for_a_head_only():
    with pytest.raises(ValueError, match="'discrete' is already registered"):
        attention.register("discrete")(attention.UnimodalHead)
    assert attention.build("discrete").__class__ is attention.DiscreteHead
    with pytest.raises(ValueError, match="derived from"):
        attention.register("number")(int)


def test_a_variant_is_named_by_what_is_not_its_heads_default():
    @attention.register("mine")
    class Mine(attention.DiscreteHead):
        def __init__(self, normaliser="sparsemax", density="gaussian", power=2):
            super().__init__()

    assert registry.name_variant("discrete") == "discrete"
    assert registry.name_variant("mine", normaliser="sparsemax", power=3) == "mine"
    assert registry.name_variant("mine", normaliser="softmax") == "mine, softmax"
    options = {"density": "paraboloid", "normaliser": "entmax15"}
    assert registry.name_variant("mine", **options) == "mine, entmax15, paraboloid"


def test_a_users_head_from_another_module_is_built_by_name(tmp_path, monkeypatch):
    (tmp_path / "my_heads.py").write_text(
        textwrap.dedent("""
        import attention

        @attention.register("average")
        class Average(attention.Head):
            def __init__(self, power: float = 0.0):
                super().__init__()
                self.power = power

            def attend(self, weights, values, grid, num_components, step):
                flat = weights**self.power * grid.mask
                flat = flat / flat.sum(1, keepdim=True)
                context = (flat[:, None].to(values.dtype) @ values).squeeze(1)
                return attention.AttentionOutput(context, flat)
        """)
    )
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module("my_heads")
    assert "average" in attention.available()
    grid = attention.Grid.of([(2, 3), (1, 2)])
    values = torch.arange(12.0).view(2, 6, 1)
    out = attention.build("average", power=0)(torch.randn(2, 6), values, grid)
    assert out.context.flatten().tolist() == [2.5, 6.5]
