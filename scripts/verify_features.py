"""Check a feature store from end to end and say what it holds."""

from configs.schema.files import VerifyFeatures
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
    resize = "any size" if manifest.resize is None else "resize {}/{}".format(*manifest.resize)
    print(f"{settings.store} is valid: {report.num_bytes / 1e9:.2f} GB")
    print(f"  from      {manifest.source}")
    print(f"  backbone  {manifest.backbone}, {resize}, {manifest.num_features} features per cell")
    print(f"  images    {manifest.num_images}, {manifest.num_cells} cells")
    shapes = [f"{height}×{width} ({n})" for (height, width), n in report.shapes.items()]
    print(f"  grids     {', '.join(shapes[:6])}{', …' if len(shapes) > 6 else ''}")
    if questions:
        print(f"  questions {report.num_questions}, each with its image")


if __name__ == "__main__":
    main()
