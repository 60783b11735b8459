"""make ask: a question about an image of your own.

python -m scripts.ask checkpoint=runs/<name> image=photo.jpg question="What color is the circle?"
"""

import time
from pathlib import Path

from configs.schema.trained import Ask
from data.io.atomic_files import check_output_file
from data.io.images import read_image
from figures.captions import format_answer
from figures.requirements import require_matplotlib
from mcan.evaluation.single_question import open_with_backbone, split_question
from mcan.evaluation.trained_model import find_checkpoint, load_trained
from mcan.runtime.distributed import choose_device
from mcan.runtime.torch_settings import set_up_torch
from scripts.cli.checkpoints import changed_options, find_run
from scripts.cli.command import command
from scripts.cli.output import choose_output

KINDS = (".png", ".pdf")
LARGEST = 1000  # pixels per side of the photo to draw on


@command("ask", literal=("image", "question", "output"))
def main(settings: Ask) -> None:
    """Answer and draw; mistakes are reported before a model is loaded."""
    require_matplotlib()
    from figures.answer_figure import make_answer_figure
    from figures.comparison_figures import write_figure
    from figures.illustrated_split import to_photo

    split_question(settings.question)
    picture = read_image(settings.image)
    checkpoint = find_checkpoint(find_run(settings.checkpoint, Path(settings.runs)))
    output = choose_figure(settings, checkpoint)
    set_up_torch(settings.runtime)
    device = choose_device(settings.runtime.device, 0)
    trained = load_trained(checkpoint, device, changed_options(settings))
    precision = settings.runtime.precision
    model = open_with_backbone(trained, weights=settings.weights, precision=precision)
    start = time.perf_counter()
    forward = model.run(picture, settings.question)
    answer = forward.answer()
    print(format_answer(forward, answer))
    content = make_answer_figure(forward, answer, to_photo(picture, LARGEST))
    write_figure(content, [output], settings.dpi)
    print(f"drawn in {output}, {time.perf_counter() - start:.1f} seconds after loading")


def choose_figure(settings: Ask, checkpoint: Path) -> Path:
    """The file to draw in: the one that is named, or one by the image's name in the run."""
    default = checkpoint.parent / "ask" / f"{Path(settings.image).stem}-attention.png"
    output = choose_output(settings.output, default)
    if output.suffix.lower() not in KINDS:
        raise ValueError(f"output is {output}, expected a file named *.png or *.pdf")
    if output.resolve() == Path(settings.image).resolve():
        raise ValueError(f"output is {output}, the same file as image; name another one")
    check_output_file(output)
    return output


if __name__ == "__main__":
    main()
