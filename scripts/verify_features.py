"""make verify-features: check a feature store from end to end and say what it holds."""

from configs.schema.files import VerifyFeatures
from data.features.manifest import Manifest
from data.features.verify import verify_store
from scripts.cli.command import command


@command("verify_features")
def main(settings: VerifyFeatures) -> None:
    """Verify; a store that is not valid ends the command with a sentence and exit code 2."""
    questions = settings.questions or []
    if isinstance(questions, str):
        questions = [questions]
    report = verify_store(settings.store, questions, settings.backbone, settings.resize)
    manifest = report.manifest
    print(f"{settings.store} is valid: {report.num_bytes / 1e9:.2f} GB")
    print(f"  from      {manifest.source}")
    print(f"  backbone  {describe_features(manifest)}")
    if manifest.is_grid:
        limit = f", at most {manifest.max_cells} per image" if manifest.max_cells else ""
        print(f"  cells     {manifest.stride}×{manifest.stride} pixels{limit}")
    print(f"  images    {manifest.num_images}, {manifest.num_cells} {manifest.unit}s")
    shapes = [
        f"{height}×{width} ({n})" if manifest.is_grid else f"{height} ({n})"
        for (height, width), n in report.shapes.items()
    ]
    what = "grids  " if manifest.is_grid else "regions"
    print(f"  {what}   {', '.join(shapes[:6])}{', …' if len(shapes) > 6 else ''}")
    if questions:
        print(f"  questions {report.num_questions}, each with its image")


def describe_features(manifest: Manifest) -> str:
    """Backbone, resize and width of the features."""
    resize = "any size" if manifest.resize is None else "resize {}/{}".format(*manifest.resize)
    parts = [manifest.backbone, resize, f"{manifest.num_features} features per {manifest.unit}"]
    return ", ".join(parts if manifest.is_grid else parts[::2])


if __name__ == "__main__":
    main()
