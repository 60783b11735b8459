"""Turn a folder of grid-feats `<image_id>.pth` files into one feature store."""

from omegaconf import DictConfig, OmegaConf

from data.convert import convert_folder
from data.store import FeatureStore
from scripts.entry import command


@command("features")
def main(config: DictConfig) -> None:
    """Convert, resuming what an earlier run left unfinished."""
    settings = OmegaConf.to_container(config, resolve=True)
    assert isinstance(settings, dict)
    copied = convert_folder(**{str(name): value for name, value in settings.items()})
    with FeatureStore(config.output) as store:
        manifest = store.manifest
        print(
            f"{config.output}: {manifest.num_images} images ({copied} copied now), "
            f"{manifest.num_cells} cells of {manifest.num_features} features, "
            f"{store.header.file_bytes / 1e9:.2f} GB"
        )


if __name__ == "__main__":
    main()
