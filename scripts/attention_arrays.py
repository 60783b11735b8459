"""make attention: what a model attends to and answers, question by question, as one HDF5 file.

python -m scripts.attention_arrays checkpoint=runs/<name> split=val layers=[encoder.0,decoder.5]
"""

from configs.schema.trained import AttentionArrays
from data.io.atomic_files import check_output_file
from data.io.disk_space import format_bytes
from mcan.attention_arrays.layers import choose_layers
from mcan.attention_arrays.split_arrays import ArrayOptions, open_questions, write_attention
from mcan.runtime.distributed import World, choose_device
from mcan.runtime.torch_settings import set_up_torch
from scripts.cli.checkpoints import load_models
from scripts.cli.command import command
from scripts.cli.output import choose_output


@command("attention_arrays")
def main(settings: AttentionArrays) -> None:
    """Load the model, find the questions, write; the same command resumes what was ended."""
    set_up_torch(settings.runtime)
    world = World(0, 1, choose_device(settings.runtime.device, 0))
    (trained,) = load_models(settings, [settings.checkpoint], world)
    layers = choose_layers(trained.model, settings.layers)
    options = ArrayOptions(tuple(layers), settings.layer_dtype, settings.num_answers)
    name = f"{settings.split}-questions.h5" if settings.questions else f"{settings.split}.h5"
    path = choose_output(settings.output, trained.path.parent / "attention" / name)
    check_output_file(path, settings.force)
    folder = trained.open_data(settings.data.root)
    asked = open_questions(
        folder, settings.split, settings.questions, trained, settings.runtime, world.device
    )
    write_attention(path, trained, asked, options, settings.runtime, world, settings.force)
    size = format_bytes(path.stat().st_size)
    print(f"{len(asked.questions):,} questions, {size}: {path}")


if __name__ == "__main__":
    main()
