"""make export: result files for the VQA server, checked before they get their names.

python -m scripts.export checkpoint=runs/<name>, or checkpoints=[runs/a,runs/b] for an ensemble
"""

from configs.schema.trained import Export
from data.vqa.results import result_name
from mcan.evaluation.export import (
    check_ensemble,
    format_upload,
    list_parts,
    name_ensemble,
    write_result_files,
)
from mcan.evaluation.predict import predict, predict_ensemble
from mcan.runtime.distributed import World
from mcan.runtime.precision import choose_dtype
from mcan.runtime.torch_settings import set_up_torch
from scripts.cli.checkpoints import load_models, open_split
from scripts.cli.command import command
from scripts.cli.output import choose_files
from scripts.cli.processes import open_processes


@command("export")
def main(settings: Export) -> None:
    """Export, on as many processes as there are."""
    with open_processes(settings.runtime) as world:
        export(settings, world)


def export(settings: Export, world: World) -> None:
    """Answer the split; the first process writes the files and says where they go."""
    set_up_torch(settings.runtime)
    if bool(settings.checkpoint) == bool(settings.checkpoints):
        raise ValueError("export needs checkpoint=…, or checkpoints=[…,…] for an ensemble")
    named = [settings.checkpoint] if settings.checkpoint else settings.checkpoints
    models = load_models(settings, named, world)
    check_ensemble(models)
    first = models[0]
    split = open_split(models, settings, world, annotated=False)
    parts = list_parts(split)
    run, layout = name_ensemble(models, settings.name), split.folder.layout
    names = [result_name(part, run, layout) for part in parts]
    paths = choose_files(settings.output, first.path.parent / "export", names)
    dtype = choose_dtype(settings.runtime.precision, world.device)
    if len(models) == 1:
        predictions = predict(first.model, split.batches(world), world, dtype)
    else:
        networks = [each.model for each in models]
        predictions = predict_ensemble(networks, split.batches(world), world, dtype)
    if world.is_first:
        files = dict(zip(parts, paths, strict=True))
        write_result_files(files, parts, predictions, first.words.answers.words, split.folder)
        print(format_upload(files, parts, split.folder))


if __name__ == "__main__":
    main()
