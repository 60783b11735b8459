"""VQA-v2 from a server on loopback: what is fetched, where it goes, what goes wrong."""

import io
import shutil
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest
from PIL import Image

from data.human_attention.vqa_hat import list_mapped_questions
from data.vqa.data_folder import DataFolder
from data.vqa.vqa_v2 import fetch_vqa_v2
from tests.data.io.loopback import Site, serve
from tests.data.sample_folder import fill_folder
from tests.small_runs import compose

VECTORS = b"what 0.1 0.2\nis 0.3 0.4\n" * 20


def pack(members: dict[str, bytes]) -> bytes:
    """A zip in memory."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


def publish(tmp_path: Path) -> dict[str, bytes]:
    """The published archives, small."""
    source = fill_folder(tmp_path / "source", splits=("train", "val", "test", "test-dev"))

    def read(*paths: Path) -> bytes:
        return pack({path.name: path.read_bytes() for path in paths})

    dot = io.BytesIO()
    Image.new("L", (4, 4), 200).save(dot, "PNG")
    questions = source.questions
    v1 = {
        source.v1_questions("val").name: questions("val").read_bytes(),
        "MultipleChoice_mscoco_val2014_questions.json": b"{}",
    }
    maps = {"vqahat_val/2000_1.png": dot.getvalue(), "__MACOSX/vqahat_val/._2000_1.png": b""}
    return {
        "v2_Questions_Train_mscoco.zip": read(questions("train")),
        "v2_Questions_Val_mscoco.zip": read(questions("val")),
        "v2_Questions_Test_mscoco.zip": read(questions("test"), questions("test-dev")),
        "v2_Annotations_Train_mscoco.zip": read(source.annotations("train")),
        "v2_Annotations_Val_mscoco.zip": read(source.annotations("val")),
        "Questions_Val_mscoco.zip": pack(v1),
        "vqahat_val.zip": pack(maps),
        "glove.840B.300d.zip": pack({"glove.840B.300d.txt": VECTORS}),
    }


def test_everything_arrives_through_cut_connections_and_is_fetched_once(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path / "vqa")
    with serve(Site(publish(tmp_path), cut_after=150, cuts=6)) as site:
        assert len(fetch_vqa_v2(folder, site.url, site.url, pause=0)) == 7
        number = len(site.asked)
        assert number > 7
        assert fetch_vqa_v2(folder, site.url, site.url, pause=0) == []
        assert len(site.asked) == number
    source = DataFolder(tmp_path / "source")
    for split in ("train", "val", "test", "test-dev"):
        assert folder.questions(split).read_bytes() == source.questions(split).read_bytes()
    assert folder.annotations("val").read_bytes() == source.annotations("val").read_bytes()
    (looked,) = list_mapped_questions(folder, "val")
    assert (looked.question_id, len(looked.maps)) == (2000, 1)
    assert list((folder.root / "downloads").iterdir()) == []


def test_human_attention_is_fetched_only_when_asked_for(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path / "vqa")
    with serve(Site(publish(tmp_path))) as site:
        assert len(fetch_vqa_v2(folder, site.url.rstrip("/"), pause=0)) == 5
    assert not folder.human_maps("val").exists()


def test_word_vectors_arrive_through_cut_connections_where_the_presets_look(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path / "vqa")
    with serve(Site(publish(tmp_path), cut_after=150, cuts=9)) as site:
        fetched = fetch_vqa_v2(folder, site.url, pause=0, glove=site.url)
        assert fetch_vqa_v2(folder, site.url, pause=0, glove=site.url) == []
    assert fetched[-1] == "glove.840B.300d.zip"
    for head in ("discrete", "unimodal", "multimodal"):
        preset = compose([f"experiment=paper_{head}", f"data.root={folder.root}"])
        assert Path(preset.word_vectors).read_bytes() == VECTORS
    assert list((folder.root / "downloads").iterdir()) == []


def test_word_vectors_that_do_not_fit_the_disk_are_not_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = DataFolder(tmp_path / "vqa")
    with serve(Site(publish(tmp_path))) as site:
        fetch_vqa_v2(folder, site.url, pause=0)
        # room for the archive, not for what is in it
        room = SimpleNamespace(free=len(VECTORS) - 1)
        monkeypatch.setattr(shutil, "disk_usage", lambda folder: room)
        with pytest.raises(OSError, match=r"unpacking .*glove\.840B\.300d\.zip needs \d+ bytes in"):
            fetch_vqa_v2(folder, site.url, pause=0, glove=site.url)
        room.free = 10**9
        number = len(site.asked)
        assert fetch_vqa_v2(folder, site.url, pause=0, glove=site.url) == ["glove.840B.300d.zip"]
        assert len(site.asked) == number  # the archive was kept


@pytest.mark.parametrize(
    ("member", "message"),
    [
        ("other.json", r"v2_Questions_Val_mscoco\.zip does not hold v2_OpenEnded"),
        ("../../evil.json", "would leave the folder"),
    ],
)
def test_an_archive_without_its_file_or_a_dangerous_one_is_named(
    tmp_path: Path, member: str, message: str
) -> None:
    files = publish(tmp_path)
    files["v2_Questions_Val_mscoco.zip"] = pack({member: b"{}"})
    with serve(Site(files)) as site, pytest.raises(ValueError, match=message):
        fetch_vqa_v2(DataFolder(tmp_path / "deep" / "vqa"), site.url, pause=0)
    assert not list(tmp_path.rglob("evil.json"))


def test_an_archive_unpacked_only_in_part_is_unpacked_again(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path / "vqa")
    files = publish(tmp_path)
    with serve(Site(files)) as site:
        fetch_vqa_v2(folder, site.url, site.url, pause=0)
        (folder.human_maps("val") / "2000_1.png").unlink()
        (folder.root / "downloads" / "vqahat_val.zip").write_bytes(files["vqahat_val.zip"])
        assert fetch_vqa_v2(folder, site.url, site.url, pause=0) == ["vqahat_val.zip"]
    assert (folder.human_maps("val") / "2000_1.png").is_file()
