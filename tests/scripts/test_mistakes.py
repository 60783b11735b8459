"""What users get wrong on a command line: one sentence, exit code 2, and nothing is written."""

import pytest

from mcan.checkpoint import load_checkpoint
from tests.checkpoint_changes import swap_words
from tests.small_models import QUIET, copy_checkpoint, find_command, listing, read_error
from tests.small_runs import settings

pytestmark = pytest.mark.filterwarnings("ignore:a constant image")

# {peaky} and {discrete} are runs, {files} is a folder of files that do not fit; see `places`
MISTAKES = [
    ("evaluate", "checkpoint={peaky} split=test", "so split=test has no accuracy"),
    ("evaluate", "checkpoint={peaky} split=nope", "there is no split 'nope'"),
    ("evaluate", "checkpoint={peaky} split=5", "split must be text"),
    ("evaluate", "checkpoint={peaky} data.root=/nowhere", "there is no data in /nowhere"),
    ("evaluate", "checkpoint={peaky} attention.lam=-1", "lam must be zero or positive, not -1"),
    ("evaluate", "checkpoint={peaky} attention.nope=1",
     "attention.nope is not an option of the multimodal head"),
    ("evaluate", "checkpoint={peaky} modules=[no_such_module]", "no_such_module"),
    ("evaluate", "checkpoint={peaky} output={files}/glove.txt", "is a file, not a folder"),
    ("evaluate", "checkpoint={files}", "files holds no best.pt"),
    ("evaluate", "checkpoint={peaky} runtime.limit_batches=2",
     "runtime.limit_batches is a setting of make train alone"),
    ("select_lambda", "checkpoint={peaky} +runtime.profile=2",
     "runtime.profile is a setting of make train alone"),
    ("export", "", "export needs checkpoint=…, or checkpoints="),
    ("export", "checkpoint={peaky} checkpoints=[{peaky}]",
     "export needs checkpoint=…, or checkpoints="),
    ("export", "checkpoint=5", "checkpoint must be text"),
    ("export", "checkpoints={peaky}", "checkpoints must be a list"),
    ("export", "checkpoints=[{peaky},/nowhere]", "there is no checkpoint or run '/nowhere'"),
    ("export", "checkpoint={peaky} name=a/b", "no slash"),
    ("export", "checkpoint={peaky} split=nope", "there is no split 'nope'"),
    ("export", "checkpoints=[{peaky},{discrete}] attention.temperature=2",
     "not an option of any head there is: discrete, multimodal"),
    ("export", "checkpoints=[{peaky},{files}/words.pt]",
     "files/words.pt was made with another vocabulary"),
    ("select_lambda", "checkpoint={discrete}",
     "was trained with discrete attention, which has no λ to select"),
    ("select_lambda", "checkpoint={peaky} folds=1", "folds must be a whole number >= 2, not 1"),
    ("select_lambda", "checkpoint={peaky} folds=13", "folds is 13, expected 2 to 12"),
    ("select_lambda", "checkpoint={peaky} grid.low=0", "expected 0 < low"),
    ("select_lambda", "checkpoint={peaky} grid.low=60", "expected 0 < low"),
    ("select_lambda", "checkpoint={peaky} grid.count=0 grid.extra=[]", "the grid of λ is empty"),
    ("select_lambda", "checkpoint={peaky} grid.extra=[-1]",
     "every entry of grid.extra must be a number >= 0, not -1"),
    ("select_lambda", "checkpoint={peaky} grid.nope=1", "there is no setting 'grid.nope'"),
    ("select_lambda", "checkpoint={peaky} split=test", "split=test has no accuracy"),
    ("select_lambda", "checkpoint={peaky} attention.lam=1", "attention.lam is what is selected"),
    ("human_attention", "", "needs checkpoints="),
    ("human_attention", "checkpoints=[{files}/none.pt]", "there is no checkpoint"),
    ("human_attention", "checkpoints=[{files}/noise.pt]", "noise.pt is not a valid checkpoint"),
    ("human_attention", "checkpoints=[{files}/wordless.pt]", "wordless.pt carries no vocabulary"),
    ("human_attention", "checkpoints=[{files}/foreign.pt]", "was trained on"),
    ("human_attention", "checkpoints=[{discrete},{discrete}]", "is named 2 times"),
    ("human_attention", "checkpoints=[{discrete}] attention.lam=2",
     "attention.lam is not an option of the discrete head"),
    ("human_attention", "checkpoints=[{discrete}] blur=0", "blur must be a number > 0, not 0"),
    ("human_attention", "checkpoints=[{discrete}] resamples=0",
     "resamples must be a whole number >= 1"),
    ("human_attention", "checkpoints=[{discrete}] split=train",
     "human_attention/train does not exist"),
    ("human_attention", "checkpoints=[{discrete}] data.root=/nowhere",
     "there is no data in /nowhere"),
    ("cost", "gpus=[128]", "more GPUs than questions"),
    ("cost", "gpus=[]", "gpus is []"),
    ("cost", "assume.utilisation=2", "assume.utilisation must be a number > 0 and <= 1"),
    ("cost", "assume.disk=0", "assume.disk must be a number > 0"),
    ("cost", "grid=[4]", "grid must be a list of 2"),
    ("cost", "runtime.profile=2", "runtime.profile is a setting of make train alone"),
    ("cost", "words=0", "words must be a whole number >= 1"),
    ("cost", "runtime.precision=int8", "precision must be"),
    ("cost", "model.num_heads=5", "model.num_heads must divide"),
    ("train", "name=2024", "name must be text"),
    ("train", "optim.epochs=0", "optim.epochs must be a whole number >= 1, not 0"),
    ("train", "train_split=test", "so split=test has no accuracy and cannot be trained on"),
    ("train", "train_split=''", "there is no split ''"),
    ("train", "tracker=[diary]", "there is no tracker 'diary'; there are tensorboard, wandb"),
    ("train", "init_from={files}/words.pt", "files/words.pt was made with another vocabulary"),
    ("train", "init_from={files}/foreign.pt", "foreign.pt was trained on 69 per cell of backbone"),
    ("train", "init_from={discrete} model.hidden=8", "discrete/best.pt has another architecture"),
]  # fmt: skip


@pytest.fixture(scope="module")
def places(peaky_run, discrete_run, tmp_path_factory):
    """Trained models, and files that do not fit them."""
    files = tmp_path_factory.mktemp("mistakes") / "files"
    model = discrete_run / "best.pt"
    manifest = load_checkpoint(model)["manifest"].replace('"patch"', '"R-50"')
    copy_checkpoint(model, files / "foreign.pt", manifest=manifest)
    copy_checkpoint(model, files / "wordless.pt", vocabulary=None)
    swap_words(copy_checkpoint(model, files / "words.pt"))
    (files / "noise.pt").write_bytes(b"noise")
    (files / "glove.txt").write_text("circle 0.1 0.2 0.3\nred 0.3 0.2 0.1\n")
    return {"peaky": peaky_run, "discrete": discrete_run, "files": files}


@pytest.mark.parametrize(("command", "words", "message"), MISTAKES)
def test_a_mistake_ends_in_one_sentence_and_writes_nothing(
    small_dataset, places, command, words, message
):
    overrides, quiet = words.format(**places).split(), [] if command == "cost" else QUIET
    if command == "train":
        overrides = settings(small_dataset, places["files"] / "runs", "name=rejected", *overrides)
    before = [listing(folder) for folder in places.values()]
    assert message in read_error(find_command(command), *overrides, quiet=quiet)
    assert before == [listing(folder) for folder in places.values()]
    assert not (places["files"] / "runs" / "rejected").exists()
