"""VQA-v2 as it is published: which archives, where their files go, and what else one needs."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from shlex import quote

from data.io.archive import extract
from data.io.download import download
from data.vqa.data_folder import DataFolder

VQA_URL = "https://s3.amazonaws.com/cvmlp/vqa/mscoco/vqa/"
GLOVE = "glove.840B.300d"


@dataclass(frozen=True)
class Archive:
    """One published zip, the files it gives, and the name each member gets in the data folder."""

    url: str
    gives: tuple[Path, ...]
    rename: Callable[[str], str | None]


def list_archives(
    folder: DataFolder, url: str, human_attention: str | None, glove: str | None
) -> list[Archive]:
    """The zips of questions and annotations.

    With VQA-HAT's address, also its maps and v1 questions; with GloVe's, also its word vectors.
    """

    def find(name: str, *files: Path, url: str = url) -> Archive:
        places = {path.name: path.relative_to(folder.root).as_posix() for path in files}
        address = f"{url.rstrip('/')}/{name}"
        return Archive(address, files, lambda member: places.get(PurePosixPath(member).name))

    def place_map(member: str) -> str | None:
        name = PurePosixPath(member).name
        if not name.endswith(".png") or name.startswith("."):  # some archives carry hidden files
            return None
        return f"{maps.relative_to(folder.root).as_posix()}/{name}"

    questions, annotations, maps = folder.questions, folder.annotations, folder.human_maps("val")
    archives = [
        find("v2_Questions_Train_mscoco.zip", questions("train")),
        find("v2_Questions_Val_mscoco.zip", questions("val")),
        find("v2_Questions_Test_mscoco.zip", questions("test"), questions("test-dev")),
        find("v2_Annotations_Train_mscoco.zip", annotations("train")),
        find("v2_Annotations_Val_mscoco.zip", annotations("val")),
    ]
    if human_attention:
        archives.append(find("Questions_Val_mscoco.zip", folder.v1_questions("val")))
        address = f"{human_attention.rstrip('/')}/vqahat_val.zip"
        archives.append(Archive(address, (maps,), place_map))
    if glove:
        archives.append(find(f"{GLOVE}.zip", folder.root / f"{GLOVE}.txt", url=glove))
    return archives


def fetch_vqa_v2(
    folder: DataFolder,
    url: str = VQA_URL,
    human_attention: str | None = None,
    pause: float = 1.0,
    glove: str | None = None,
) -> list[str]:
    """Download and unpack what is not there yet; give the names of the archives fetched."""
    fetched = []
    for archive in list_archives(folder, url, human_attention, glove):
        name = archive.url.rsplit("/", 1)[-1]
        path = folder.root / "downloads" / name
        # an archive is deleted once it is unpacked: one that is there was perhaps unpacked in part
        if all(file.exists() for file in archive.gives) and not path.exists():
            continue
        if not path.exists():
            download(archive.url, path, pause=pause)
        extract(path, folder.root, archive.rename)
        absent = [file.name for file in archive.gives if not file.exists()]
        if absent:
            raise ValueError(
                f"{path} does not hold {', '.join(absent)}; delete it and run the command again"
            )
        path.unlink()
        fetched.append(name)
    return fetched


def explain_features(root: Path) -> str:
    """How to get the grid features, and the room each step takes."""
    return f"""Features of VQA-v2 (the questions alone are there now), either
  download:  https://dl.fbaipublicfiles.com/grid-feats-vqa/R-50/R-50-features.tgz, unpack it into
             one folder per split, then for each of train2014, val2014, test2015
               make features SOURCE=<folder> OUT={quote(str(root))}/features/<split>.h5
  or extract: images from http://images.cocodataset.org/zips/<split>.zip into
             {root}/images/<split>, then make extract
Room: images about 13 + 6 + 13 GB (train2014, val2014, test2015); .pth files (float32) about
      twice the stores; stores (float16) 172 + 84 + 169 GB. An archive and a folder of .pth files
      may be deleted once `python -m scripts.verify_features` is content with the store.
Optional: VG_questions.json and VG_annotations.json for train_split=train+val+vg, and the regions
      that published MCANs were trained on; docs/data.md says where they come from."""
