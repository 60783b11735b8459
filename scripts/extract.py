"""Describe the images of a folder and write one feature store."""

from omegaconf import DictConfig

from data.extract import extract_patches
from data.store import FeatureStore
from scripts.entry import command


@command("extract")
def main(config: DictConfig) -> None:
    """Extract, resuming what an earlier run left unfinished."""
    if config.backbone != "patch":
        raise ValueError(f"there is no backbone '{config.backbone}'; there is patch")
    described = extract_patches(config.images, config.output, config.force, config.num_threads)
    with FeatureStore(config.output) as store:
        manifest = store.manifest
        print(
            f"{config.output}: {manifest.num_images} images ({described} described now), "
            f"{manifest.num_cells} cells of {manifest.num_features} features"
        )


if __name__ == "__main__":
    main()
