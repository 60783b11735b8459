"""Describe the images of a folder and write one feature store."""

from pathlib import Path

from omegaconf import DictConfig

from data.backbones import open_backbone
from data.destination import refuse_existing
from data.extract import extract_features
from data.store import FeatureStore
from mcan.processes import choose_device
from scripts.entry import command


@command("extract")
def main(config: DictConfig) -> None:
    """Extract, resuming what an earlier run left unfinished."""
    refuse_existing(Path(config.output), config.force)  # before weights are read or downloaded
    device = choose_device(config.device, local_rank=0)
    resize = None if config.resize is None else tuple(config.resize)
    backbone = open_backbone(config.backbone, config.weights, device, resize)
    described = extract_features(
        config.images,
        config.output,
        backbone,
        force=config.force,
        num_threads=config.num_threads,
        batch_size=config.batch_size,
    )
    with FeatureStore(config.output) as store:
        manifest = store.manifest
        print(
            f"{config.output}: {manifest.num_images} images ({described} described now), "
            f"{manifest.num_cells} cells of {manifest.num_features} features"
        )


if __name__ == "__main__":
    main()
