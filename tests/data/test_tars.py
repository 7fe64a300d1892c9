import io
import json
import tarfile

import numpy as np
import pytest
from tests.data.layouts import LABELS, PIXELS, encode, tar

from haptera.data import open_data
from haptera.errors import HapteraError


def members(path, contents):
    with tarfile.open(path, "w") as out:
        for name, content in contents.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            out.addfile(member, io.BytesIO(content))
    return path


IMAGE = encode(PIXELS[0])


def test_the_names_that_the_shards_of_ccc_have(tmp_path):
    data = open_data(tar(tmp_path / "ccc.tar", ("input.png", "output.cls")))
    assert data.targets.tolist() == LABELS.tolist()


def test_shards_are_read_one_after_the_other_by_a_pattern_or_a_folder(tmp_path):
    for number in range(3):
        members(tmp_path / f"part-{number:03d}.tar", {f"{number}.png": encode(PIXELS[number]), f"{number}.cls": b"1"})
    for place in (tmp_path, tmp_path / "part-*.tar", tmp_path / "part-{000..002}.tar"):
        data = open_data(place)
        np.testing.assert_array_equal(
            (data.images(np.array([2]))[0] * 255).round().byte(), PIXELS[2].transpose(2, 0, 1)
        )
    assert len(open_data(tmp_path / "part-{001..002}.tar")) == 2


def test_labels_in_json(tmp_path):
    content = {"a.jpg": IMAGE, "a.json": json.dumps({"label": 7, "url": "x"}).encode()}
    assert open_data(members(tmp_path / "j.tar", content)).targets.tolist() == [7]


def test_a_tar_without_labels(tmp_path):
    assert open_data(members(tmp_path / "bare.tar", {"a.png": IMAGE, "b.png": IMAGE})).targets is None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"a.png": IMAGE, "a.cls": b"1", "b.png": IMAGE}, "the sample b has an image and no label, as have 1 of 2"),
        ({"a.png": IMAGE, "a.cls": b"dog"}, "a.cls holds 'dog'; the number of a class"),
        ({"a.png": IMAGE, "a.jpg": IMAGE, "a.cls": b"1"}, "the sample a has two images"),
        ({"a.png": IMAGE, "a.json": b"{"}, "a.json is not JSON"),
        ({"a.txt": b"hello"}, "no images in"),
    ],
)
def test_shards_that_cannot_be_right_are_refused(content, message, tmp_path):
    with pytest.raises(HapteraError, match=message):
        open_data(members(tmp_path / "odd.tar", content))


def test_a_shard_that_is_cut_short_is_named(tmp_path):
    path = tar(tmp_path / "short.tar")
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2 + 100])
    with pytest.raises(HapteraError, match=r"short\.tar"):
        open_data(path)
    path.write_bytes(b"not a tar at all" * 100)
    with pytest.raises(HapteraError, match=r"cannot read .*short\.tar as a tar file"):
        open_data(path)


def test_a_compressed_tar_is_refused_with_what_to_do(tmp_path):
    path = tmp_path / "packed.tar.gz"
    with tarfile.open(path, "w:gz") as out:
        out.addfile(tarfile.TarInfo("a.txt"))
    with pytest.raises(HapteraError, match=r"unpack it to a plain \.tar"):
        open_data(path)


def test_a_damaged_image_is_named_with_its_shard(tmp_path):
    data = open_data(members(tmp_path / "d.tar", {"a.png": IMAGE, "b.png": IMAGE[:200]}))
    with pytest.raises(HapteraError, match=r"cannot read the image b of .*d\.tar"):
        data.images(np.array([1]))
