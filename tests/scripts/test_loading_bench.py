import tempfile
from pathlib import Path

from scripts.bench.loading import measure


def test_the_loading_benchmark_measures_everything_and_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    rows = measure(num_images=48, num_rounds=2, num_features=16)
    figures = {f"{row.name} {row.unit}": row.median for row in rows}
    assert all(value > 0 for value in figures.values())
    assert len(rows) == 9
    assert "loader against a bare copy ×" in figures
    assert list(Path(tmp_path).iterdir()) == []
