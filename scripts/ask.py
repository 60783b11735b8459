"""make ask: a question about a picture of one's own.

python -m scripts.ask checkpoint=runs/<name> image=photo.jpg question="What color is the circle?"
"""

import sys
import time
from pathlib import Path

from hydra.core.override_parser.types import Quote, QuotedString
from omegaconf import DictConfig

from data.files import refuse_file_on_the_way, refuse_folder, replacing
from data.pictures import read_image
from mcan.processes import choose_device
from scripts.asking import Seen, View, open_asker, require_words
from scripts.entry import command
from scripts.evaluation import begin, changed_options
from scripts.gathering import find_run, require_drawing
from scripts.settings import require_text
from scripts.trained import find_checkpoint, load_trained

KINDS = (".png", ".pdf")
LEAST_DPI = 20
LITERAL = ("image", "question", "output")  # whose commas and brackets mean nothing to Hydra


def main() -> None:
    """Take texts as they are typed, and go."""
    sys.argv[1:] = map(take_literally, sys.argv[1:])
    run()


@command("ask")
def run(config: DictConfig) -> None:
    """Look at the picture, answer, draw; what may be wrong is said before a model is loaded."""
    require_drawing()
    from figures.sheet import draw_sheet, save_figure
    from scripts.answer_sheet import make_sheet

    require_words(config.question)
    picture = read_image(config.image)
    checkpoint = find_checkpoint(find_run(config.checkpoint, Path(config.runs)))
    output = choose_output(config, checkpoint)
    begin(config)
    device = choose_device(config.runtime.device, 0)
    trained = load_trained(checkpoint, device, changed_options(config))
    asker = open_asker(trained, config.weights, config.runtime)
    start = time.perf_counter()
    seen = asker.ask(picture, config.question)
    view = seen.choose()
    tell(seen, view)
    figure = draw_sheet(make_sheet(seen, view))
    with replacing(output) as temporary:
        save_figure(figure, temporary, output.suffix[1:].lower(), config.dpi)
    print(f"drawn in {output}, {time.perf_counter() - start:.1f} seconds after loading")


def take_literally(word: str) -> str:
    """Quote the value of a text setting, unless it is in quotes already."""
    key, _, value = word.partition("=")
    is_quoted = len(value) > 1 and value[0] in "'\"" and value[-1] == value[0]
    if key not in LITERAL or not value or is_quoted or value == "null":
        return word
    return f"{key}={QuotedString(value, Quote.single).with_quotes()}"


def choose_output(config: DictConfig, checkpoint: Path) -> Path:
    """The file to draw in: the one that is named, or one by the picture's name in the run."""
    output = checkpoint.parent / "ask" / f"{Path(config.image).stem}-attention.png"
    if config.output:
        output = Path(require_text("output", config.output))
    if output.suffix.lower() not in KINDS:
        raise ValueError(f"output is {output}, expected a file named *.png or *.pdf")
    if output.resolve() == Path(config.image).resolve():
        raise ValueError(f"output is {output}, the same file as image; name another one")
    if config.dpi < LEAST_DPI:
        raise ValueError(f"dpi is {config.dpi}, expected at least {LEAST_DPI}")
    refuse_file_on_the_way(output)
    refuse_folder(output)
    return output


def tell(seen: Seen, view: View) -> None:
    """Print the question, its answers, and how many components the attention has."""
    from scripts.sheets import name_answer, show_percent

    names = [name_answer(guess.answer) for guess in view.answers]
    width = max(map(len, names))
    print(seen.question)
    for name, guess in zip(names, view.answers, strict=True):
        print(f"  {name:{width}}  {show_percent(guess.probability):>6}")
    if view.lengths:
        print(f"K* = {view.num_components} of at most {seen.k_max}, with λ = {view.lam:g}")
    else:
        components = f", K = {view.num_components}" if view.mixture else ""
        print(f"{seen.trained.options['name']} attention{components}")
    for notice in seen.notices:
        print(f"notice: {notice}")


if __name__ == "__main__":
    main()
