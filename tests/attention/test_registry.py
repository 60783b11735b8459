import subprocess
import sys
import textwrap

import pytest

import attention
from attention import registry


@pytest.fixture(autouse=True)
def leave_the_registry_as_it_was(monkeypatch):
    monkeypatch.setattr(registry, "_heads", dict(registry._heads))


def test_the_three_heads_of_the_paper_are_available():
    assert attention.available() == ("discrete", "multimodal", "unimodal")


def test_an_unknown_name_lists_what_there_is():
    with pytest.raises(ValueError, match="no attention head 'softmax'; there are discrete, multi"):
        attention.build("softmax")


def test_an_unknown_option_lists_what_there_is():
    with pytest.raises(
        ValueError, match="'multimodal' has no option 'lambda'; its options are k_m"
    ):
        attention.build("multimodal", **{"lambda": 5})


def test_a_name_is_registered_once():
    with pytest.raises(ValueError, match="'discrete' is already registered"):

        @attention.register("discrete")
        class Another(attention.Head):
            pass

    assert attention.build("discrete").__class__ is attention.DiscreteHead


def test_only_heads_are_registered():
    with pytest.raises(ValueError, match="derived from"):
        attention.register("number")(int)


def test_a_users_head_from_another_module_is_built_by_name(tmp_path):
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
    program = textwrap.dedent("""
        import torch, attention, my_heads
        grid = attention.Grid.of([(2, 3), (1, 2)])
        values = torch.arange(12.0).view(2, 6, 1)
        out = attention.build("average", power=0)(torch.randn(2, 6), values, grid)
        assert out.context.flatten().tolist() == [2.5, 6.5], out.context
        print(attention.available())
    """)
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={"PYTHONPATH": f"{tmp_path}:{registry.__file__.rsplit('/', 2)[0]}"},
    )
    assert done.returncode == 0, done.stderr
    assert "average" in done.stdout
