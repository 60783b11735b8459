"""Turn a folder of grid-feats `<image_id>.pth` files into one feature store."""

from configs.schema.files import Features
from data.features.from_pth import convert_folder
from data.features.reader import FeatureStore
from scripts.cli.command import command


@command("features")
def main(settings: Features) -> None:
    """Convert, resuming what an earlier run left unfinished."""
    options = {name: value for name, value in vars(settings).items() if name != "modules"}
    copied = convert_folder(**options)
    with FeatureStore(settings.output) as store:
        manifest = store.manifest
        print(
            f"{settings.output}: {manifest.num_images} images ({copied} copied now), "
            f"{manifest.num_cells} cells of {manifest.num_features} features, "
            f"{store.header.file_bytes / 1e9:.2f} GB"
        )


if __name__ == "__main__":
    main()
