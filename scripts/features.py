"""make features: turn a folder of grid-feats `.pth` or bottom-up `.npz` files into one store."""

from configs.schema.files import Features
from data.features.from_npz import convert_regions, holds_regions
from data.features.from_pth import convert_folder
from data.features.reader import FeatureStore
from scripts.cli.command import command


@command("features")
def main(settings: Features) -> None:
    """Convert, resuming what an earlier run left unfinished."""
    options = {name: value for name, value in vars(settings).items() if name != "modules"}
    if settings.backbone is None:
        del options["backbone"]  # each kind of files has its own
    if holds_regions(settings.source):
        del options["resize"]
        copied = convert_regions(**options)
    else:
        copied = convert_folder(**options)
    with FeatureStore(settings.output) as store:
        manifest = store.manifest
        print(
            f"{settings.output}: {manifest.num_images} images ({copied} copied now), "
            f"{manifest.num_cells} {manifest.unit}s of {manifest.num_features} features, "
            f"{store.header.file_bytes / 1e9:.2f} GB"
        )


if __name__ == "__main__":
    main()
