"""The figure of the λ table."""

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from figures.lambda_figure import mark_pick, scale_axis
from mcan.evaluation.lambda_selection import Pick


@pytest.mark.parametrize("lam", [0.05, 1.0, 50.0])
def test_the_label_of_the_picked_lambda_stays_inside_its_panel(lam):
    figure = Figure(figsize=(8, 7))
    FigureCanvasAgg(figure)
    axes, lams = figure.subplots(), [0.05, 1.0, 50.0]
    axes.plot(lams, lams)
    mark_pick([axes], Pick(4, lam, 50.0, [lam], 50.0, 1.0, [50.0]), lams)
    scale_axis(axes, lams)
    figure.canvas.draw()
    (label,) = axes.texts
    panel, written = axes.get_window_extent(), label.get_window_extent()
    assert panel.x0 < written.x0
    assert written.x1 < panel.x1
