"""A baseline in its own process: what its caller may take for granted when it returns."""

import torch

from benchmarks import baseline_process


def test_a_baseline_returns_when_its_gpu_has_done_the_work(monkeypatch):
    done = []
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: done.append("GPU"))
    monkeypatch.setattr(baseline_process, "_made", [lambda: done.append("launched")])
    baseline_process._work()
    assert done == ["launched", "GPU"]
