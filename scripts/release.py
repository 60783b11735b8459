"""make release: a checkpoint to hand on, without the state of its run, and a model card beside it.

python -m scripts.release checkpoint=runs/<name> output=model.pt
"""

from pathlib import Path
from shlex import quote

from configs.schema.files import Release
from data.io.atomic_files import atomic_write, check_output_file
from mcan.checkpoint import load_checkpoint, save_checkpoint
from mcan.evaluation.trained_model import load_trained
from mcan.release.model_card import write_card
from mcan.release.released_model import list_measurements, strip_run_state
from scripts.cli.checkpoints import find_run
from scripts.cli.command import command


@command("release")
def main(settings: Release) -> None:
    """Release, and say what was written."""
    output = Path(settings.output)
    card = check_output(output)
    trained = load_trained(find_run(settings.checkpoint, Path(settings.runs)))
    content = load_checkpoint(trained.path)
    measurements = list_measurements(trained, content)
    text = write_card(trained, content, measurements, output)
    save_checkpoint(output, strip_run_state(content))
    try:
        with atomic_write(card) as temporary:
            temporary.write_text(text, encoding="utf-8")
    except BaseException:
        output.unlink()  # one does not go without the other
        raise
    megabytes = [path.stat().st_size / 1e6 for path in (trained.path, output)]
    print(f"{output} has {megabytes[1]:.1f} MB of {trained.path}'s {megabytes[0]:.1f} MB")
    print(f"{card} is its model card, with {len(measurements)} measured accuracies")
    if not measurements:
        evaluate = f"make evaluate CHECKPOINT={quote(str(trained.path))}"
        print(f"no accuracy is known: {evaluate}, then release again")


def check_output(output: Path) -> Path:
    """Raise unless checkpoint and card can be written where nothing is; where the card goes."""
    if output.suffix != ".pt":
        raise ValueError(f"output is {output}, expected a file named *.pt")
    card = output.with_suffix(".md")
    for path in (output, card):
        check_output_file(path)
        if path.exists():
            raise FileExistsError(f"{path} exists already; delete it or name another output=…")
    return card


if __name__ == "__main__":
    main()
