"""Check a feature store from end to end and say what it holds."""

from omegaconf import DictConfig, ListConfig

from data.verify import verify_store
from scripts.entry import command
from scripts.settings import require_text


@command("verify_features")
def main(config: DictConfig) -> None:
    """Verify; a store that is not sound ends the command with a sentence and exit code 2."""
    given = config.questions
    listed = list(given) if isinstance(given, ListConfig) else [given] if given is not None else []
    questions = [require_text("questions", path) for path in listed]
    report = verify_store(config.store, questions, config.backbone, config.resize)
    manifest = report.manifest
    resize = "any size" if manifest.resize is None else "resize {}/{}".format(*manifest.resize)
    print(f"{config.store} is sound: {report.num_bytes / 1e9:.2f} GB")
    print(f"  from      {manifest.source}")
    print(f"  backbone  {manifest.backbone}, {resize}, {manifest.num_features} features a cell")
    print(f"  images    {manifest.num_images}, {manifest.num_cells} cells")
    shapes = [f"{height}×{width} ({n})" for (height, width), n in report.shapes.items()]
    print(f"  grids     {', '.join(shapes[:6])}{', …' if len(shapes) > 6 else ''}")
    if questions:
        print(f"  questions {report.num_questions}, each with its image")


if __name__ == "__main__":
    main()
