"""Damaged and odd data of every layout, through the command line: one sentence that names the file, no traceback."""

import json
import struct
import tarfile
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.commands import call
from tests.data import layouts

from haptera.data import open_data

RUN = ["run", "--model", "linear:channels=3,size=32,classes=3", "--stream", "clean", "--adapter", "none", "--quiet"]


def bomb() -> bytes:
    """A PNG of a few bytes that says it has 900 million pixels."""
    header = struct.pack(">2L5B", 30_000, 30_000, 8, 0, 0, 0, 0)
    pieces = [(b"IHDR", header), (b"IDAT", zlib.compress(bytes(1000))), (b"IEND", b"")]
    chunks = [
        struct.pack(">L", len(data)) + name + data + struct.pack(">L", zlib.crc32(name + data)) for name, data in pieces
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def cut(path: Path, share: float = 0.6) -> Path:
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])
    return path


def flip(path: Path, at: float = 0.5) -> Path:
    content = bytearray(path.read_bytes())
    start = int(len(content) * at)
    content[start : start + 64] = bytes(64)
    path.write_bytes(content)
    return path


def images_table(images: list[bytes | None], labels: list[int | None]) -> pa.Table:
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    rows = [None if image is None else {"bytes": image, "path": "a.png"} for image in images]
    return pa.table({"image": pa.array(rows, kind), "label": pa.array(labels, pa.int64())})


def arrow(path: Path, table: pa.Table) -> Path:
    with pa.OSFile(str(path), "w") as sink, pa.ipc.new_stream(sink, table.schema) as out:
        out.write_table(table)
    return path


def parquet(path: Path, table: pa.Table) -> Path:
    pq.write_table(table, path, write_page_checksum=True, use_dictionary=False)
    return path


def tar(path: Path, members: dict[str, bytes]) -> Path:
    with tarfile.open(path, "w") as out:
        for name, content in members.items():
            (path.parent / "member").write_bytes(content)
            out.add(path.parent / "member", name)
    return path


GOOD = [layouts.encode(pixels) for pixels in layouts.PIXELS[:3]]


def missing_label(folder: Path) -> Path:
    return tar(folder / "a.tar", {"1.png": GOOD[0], "1.cls": b"0", "2.png": GOOD[1]})


def wrong_paths(folder: Path) -> Path:
    layouts.table(folder)
    (folder / "list.csv").write_text("path,label\nfiles/ant/000.png,ant\nfiles/ant/nowhere.png,ant\n")
    return folder / "list.csv"


def path_beyond_names(folder: Path) -> Path:
    (folder / "list.csv").write_text(f"path,label\n{'x' * 5000}.png,ant\n")
    return folder / "list.csv"


def null_byte(folder: Path) -> Path:
    (folder / "list.csv").write_bytes(b"path,label\na\0b.png,ant\n")
    return folder / "list.csv"


def link_loop(folder: Path) -> Path:
    layouts.class_folders(folder / "val")
    (folder / "val" / "ant" / "again").symlink_to(folder / "val" / "ant")
    return folder / "val"


def link_to_itself(folder: Path) -> Path:
    layouts.class_folders(folder / "val")
    (folder / "val" / "ant" / "self.png").symlink_to("self.png")
    return folder / "val"


def hub_with_a_loop(folder: Path) -> Path:
    layouts.parquet(folder / "hub" / "data" / "test-00000-of-00001.parquet")
    (folder / "hub" / "data" / "again").symlink_to(folder / "hub")
    (folder / "hub" / "data" / "test-00000-of-00001.parquet").write_bytes(b"PAR1")
    return folder / "hub"


def lost_file(folder: Path) -> Path:
    layouts.saved_dataset(folder / "saved")
    next((folder / "saved").glob("*-00001-of-*.arrow")).unlink()
    return folder / "saved"


def no_splits(folder: Path) -> Path:
    (folder / "saved").mkdir()
    (folder / "saved" / "dataset_dict.json").write_text(json.dumps({"splits": ["test"]}))
    return folder / "saved"


def named_labels(folder: Path) -> Path:
    return tar(folder / "a.tar", {"1.png": GOOD[0], "1.cls": b"cat"})


# what is wrong -> (preparation, part of the message)
BAD = {
    "Parquet cut short": (lambda f: cut(layouts.parquet(f / "a.parquet")), "a.parquet"),
    "Parquet with damage inside": (
        lambda f: flip(parquet(f / "a.parquet", images_table(GOOD, [0, 1, 2]))),
        "a.parquet",
    ),
    "Parquet of nothing": (lambda f: parquet(f / "a.parquet", images_table([], [])), "holds no rows"),
    "Parquet without images": (lambda f: parquet(f / "a.parquet", pa.table({"x": [1]})), "encoded images"),
    "Arrow cut short": (lambda f: cut(arrow(f / "a.arrow", images_table(GOOD, [0, 1, 2]))), "a.arrow"),
    "Arrow with null images": (
        lambda f: arrow(f / "a.arrow", images_table([GOOD[0], None, None], [0, 1, 2])),
        "row 1 of",
    ),
    "Parquet with null images": (
        lambda f: parquet(f / "a.parquet", images_table([None, *GOOD], [0, 1, 2, 0])),
        "row 0 of",
    ),
    "Parquet with a label missing": (
        lambda f: parquet(f / "a.parquet", images_table(GOOD, [0, None, 2])),
        "have no label",
    ),
    "bomb in Parquet": (lambda f: parquet(f / "a.parquet", images_table([*GOOD, bomb()], [0, 1, 2, 0])), "row 3 of"),
    "bomb in a tar": (lambda f: tar(f / "a.tar", {"1.png": GOOD[0], "2.png": bomb()}), "2 of"),
    "tar with a label missing": (missing_label, "has an image and no label"),
    "tar with names for labels": (named_labels, "the number of a class was expected"),
    "tar cut short": (lambda f: cut(layouts.tar(f / "a.tar"), 0.35), "a.tar as a tar file"),
    "tar of nothing": (lambda f: tar(f / "a.tar", {"readme.txt": b"no"}), "no images in"),
    "CSV with wrong paths": (wrong_paths, "line 3: there is no file"),
    "CSV with a path beyond all names": (path_beyond_names, "list.csv"),
    "CSV with a null byte": (null_byte, "list.csv"),
    "link to a folder above": (link_loop, "is a link to a folder that it is in"),
    "link to itself": (link_to_itself, "self.png"),
    "hub with a loop of links": (hub_with_a_loop, "test-00000-of-00001.parquet"),
    "datasets folder with a missing file": (lost_file, "state.json"),
    "datasets folder without splits": (no_splits, "saved"),
    "CIFAR cut short": (lambda f: cut(layouts.cifar_binary(f / "cifar") / "test_batch.bin").parent, "test_batch.bin"),
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_data_is_one_clear_message(kind, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("HAPTERA_CACHE", str(tmp_path / "cache"))
    prepare, message = BAD[kind]
    (tmp_path / "in").mkdir()
    place = prepare(tmp_path / "in")
    code = call(*RUN, "--data", str(place), "--out", str(tmp_path / "out"))
    error = capsys.readouterr().err
    said = [line for line in error.splitlines() if line.startswith("error:")]
    assert code == 2, error
    assert message in error
    assert "Traceback" not in error
    assert len(said) == 1, error


def test_a_cache_that_cannot_be_written_is_named_with_what_to_set(tmp_path, monkeypatch, capsys):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("HAPTERA_CACHE", str(tmp_path / "file" / "cache"))
    place = layouts.parquet(tmp_path / "a.parquet")
    assert call(*RUN, "--data", str(place), "--out", str(tmp_path / "out")) == 2
    error = capsys.readouterr().err
    assert "set HAPTERA_CACHE to a folder with 1 MB to spare" in error
    assert "Traceback" not in error


def test_many_who_fill_the_cache_at_once_all_read_and_leave_one_copy(tmp_path, monkeypatch):
    monkeypatch.setenv("HAPTERA_CACHE", str(tmp_path / "cache"))
    place = layouts.parquet(tmp_path / "a.parquet")
    with ThreadPoolExecutor(6) as pool:
        read = list(pool.map(lambda _: open_data(place).images(np.arange(12)).numpy(), range(6)))
    assert all(np.array_equal(images, read[0]) for images in read)
    assert len(list((tmp_path / "cache" / "arrow").iterdir())) == 1


def test_a_copy_in_the_cache_that_is_damaged_is_made_anew(tmp_path, monkeypatch):
    monkeypatch.setenv("HAPTERA_CACHE", str(tmp_path / "cache"))
    place = layouts.parquet(tmp_path / "a.parquet")
    before = open_data(place).images(np.arange(12)).numpy()
    cut(next((tmp_path / "cache" / "arrow").iterdir()))
    np.testing.assert_array_equal(open_data(place).images(np.arange(12)).numpy(), before)


def test_rows_without_an_image_are_dropped_by_choice(tmp_path, caplog):
    place = arrow(tmp_path / "a.arrow", images_table([GOOD[0], None, *GOOD[1:]], [0, 1, 2, 0]))
    data = open_data(place, broken="drop")
    assert data.rows.tolist() == [0, 2, 3]
    assert "1 of 4 images are dropped: row 1 of" in caplog.text
