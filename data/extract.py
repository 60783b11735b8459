"""From a folder of images to a feature store: one grid of descriptions an image."""

import re
from pathlib import Path

from PIL import Image, UnidentifiedImageError
from tqdm import tqdm

from data.destination import refuse_existing
from data.entries import LARGEST_ID
from data.patch import NUM_FEATURES, choose_grid, describe
from data.scan import Shape, State, forget_changed, read_state, recall_scan, save_scan
from data.store_writer import StoreWriter
from data.threads import choose_threads, run_threads

ENDINGS = {".jpg", ".jpeg", ".png"}
IMAGE_NAME = re.compile(r"(?:COCO_\w+_)?0*(\d+)", re.ASCII)  # COCO_val2014_000000000042, or 42
ORIENTATION = 0x0112  # EXIF; 5 to 8 turn the picture by a quarter


def extract_patches(
    images: str | Path, output: str | Path, force: bool = False, num_threads: int = 0
) -> int:
    """Describe every image of a folder with the `patch` backbone; the number described now.

    What an interrupted run has described is not described again, unless the file has changed; the
    store is whole or absent.
    """
    folder, output = Path(images), Path(output)
    num_threads = choose_threads(num_threads)
    refuse_existing(output, force)
    files = list_images(folder)
    record, origin = output.with_name(output.name + ".scan"), str(folder.resolve())
    scan = {image_id: look(path) for image_id, path in files.items()}
    with StoreWriter(
        output,
        {image_id: (height, width) for image_id, (_, (_, height, width)) in scan.items()},
        NUM_FEATURES,
        source=f"{origin} ({len(files)} files)",
        backbone="patch",
        force=force,
        resume=True,
    ) as writer:
        forget_changed(writer, recall_scan(record, origin), scan)
        save_scan(record, origin, scan)
        missing = [image_id for image_id in files if image_id not in writer.done]

        def work(image_id: int) -> None:
            writer.write(image_id, describe(read_image(files[image_id])).reshape(-1, NUM_FEATURES))

        done = len(files) - len(missing)
        with tqdm(total=len(files), initial=done, desc="describe", unit="image") as bar:
            for _ in run_threads(work, missing, num_threads):
                bar.update()
    record.unlink()
    return len(missing)


def list_images(folder: Path) -> dict[int, Path]:
    """{image_id: file} by ascending id: COCO's names, or plain <image_id>.jpg or .png."""
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder} is not a folder of images")
    files: dict[int, Path] = {}
    for path in sorted(folder.iterdir()):
        if path.suffix.lower() not in ENDINGS:
            continue
        match = IMAGE_NAME.fullmatch(path.stem)
        if match is None:
            raise ValueError(f"{path} is not named COCO_<split>_<image_id> or <image_id>")
        image_id = int(match.group(1))
        if image_id > LARGEST_ID:
            raise ValueError(f"{path}: an image id may be at most {LARGEST_ID}; rename the file")
        if image_id in files:
            raise ValueError(f"{path} and {files[image_id]} are the same image; keep one of them")
        files[image_id] = path
    if not files:
        raise ValueError(f"{folder} holds no .jpg or .png images")
    return dict(sorted(files.items()))


def look(path: Path) -> tuple[State, Shape]:
    """The state of a file and the shape of its description, without decoding it."""
    return read_state(path), (NUM_FEATURES, *choose_grid(*upright_size(path)))


def read_image(path: Path) -> Image.Image:
    """A decoded picture; a broken one raises an error that names the file."""
    try:
        image = Image.open(path)
        image.load()
    except (UnidentifiedImageError, OSError, SyntaxError, Image.DecompressionBombError) as error:
        raise ValueError(f"{path} is not a readable image: {error}") from None
    return image


def upright_size(path: Path) -> tuple[int, int]:
    """Width and height as seen, EXIF orientation applied, read from the header alone."""
    try:
        with Image.open(path) as image:
            turned = image.getexif().get(ORIENTATION, 1) >= 5
            width, height = image.size
    except (UnidentifiedImageError, OSError, SyntaxError, Image.DecompressionBombError) as error:
        raise ValueError(f"{path} is not a readable image: {error}") from None
    return (height, width) if turned else (width, height)
