"""make extract: describe the images of a folder and write one feature store."""

from pathlib import Path

from configs.schema.files import Extract
from data.backbones.extract import extract_features
from data.backbones.registry import open_backbone
from data.features.reader import FeatureStore
from data.io.atomic_files import check_output_file
from mcan.runtime.distributed import choose_device
from scripts.cli.command import command


@command("extract")
def main(settings: Extract) -> None:
    """Extract, resuming what an earlier run left unfinished."""
    # before weights are read or downloaded
    check_output_file(Path(settings.output), settings.force)
    device = choose_device(settings.device, local_rank=0)
    backbone = open_backbone(settings.backbone, settings.weights, device, settings.resize or "own")
    described = extract_features(
        settings.images,
        settings.output,
        backbone,
        dtype=settings.dtype,
        force=settings.force,
        num_threads=settings.num_threads,
        batch_size=settings.batch_size,
    )
    with FeatureStore(settings.output) as store:
        manifest = store.manifest
        print(
            f"{settings.output}: {manifest.num_images} images ({described} described now), "
            f"{manifest.num_cells} cells of {manifest.num_features} features"
        )


if __name__ == "__main__":
    main()
