"""All figures of each of several questions, by the names of their files."""

from collections.abc import Iterator, Sequence

from figures.attention_samples import AttentionSample, name_heads
from figures.comparison_figures import compare_components, compare_heads
from figures.drawing.figure import FigureContent
from figures.illustrated_split import IllustratedSplit
from figures.layer_figures import collect_word_maps, compare_words
from mcan.evaluation.trained_model import TrainedModel, name_models
from mcan.runtime.settings import Runtime


def compose_figures(
    models: Sequence[TrainedModel],
    split: IllustratedSplit,
    samples: Sequence[Sequence[AttentionSample]],
    runtime: Runtime,
    *,
    components: bool = True,
    layers: bool = False,
    smooth: bool = False,
) -> Iterator[dict[str, FigureContent]]:
    """For each question the models side by side and, where asked for, each model's own figures.

    `samples` holds each model's attention to the same questions.
    """
    runs, heads = [name.replace("/", "-") for name in name_models(models)], name_heads(models)
    ids = [sample.question_id for sample in samples[0]]
    words = [collect_word_maps(model, split, ids, runtime) if layers else {} for model in models]
    several = sum(bool(each[0].candidates) for each in samples) > 1
    for number, *of_question in zip(ids, *samples, strict=True):
        contents = {"heads": compare_heads(split, heads, of_question, smooth)}
        of_models = zip(models, runs, heads, of_question, words, strict=True)
        for model, run, head, sample, maps in of_models:
            if components and len(sample.candidates) > 1:
                kind = f"components-{run}" if several else "components"
                contents[kind] = compare_components(split, model, sample)
            if layers:
                kind = f"layers-{run}" if len(models) > 1 else "layers"
                contents[kind] = compare_words(split, head, sample, maps[number])
        yield {f"{number}-{kind}": content for kind, content in contents.items()}
