"""Every line of the table in "Bring your data" is run as a user types it."""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tests.commands import call
from tests.data import layouts

pytestmark = pytest.mark.long  # CI runs these, too: `make test-long`

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "data.md"
TABLE = GUIDE.read_text("utf-8").partition("| what you have |")[2].partition("\n\n")[0]
LINES = re.findall(r"`(--data [^`]+)`", TABLE)
CLASSES = {"digits": 10, "ILSVRC/val": 1000, "imagenet-r": 1000}
"""First word after `--data` -> outputs of the model, where they are not 3."""


def _photos(root: Path) -> None:
    root.mkdir()
    for number in range(3):
        (root / f"{number}.png").write_bytes(layouts.encode(layouts.PIXELS[number]))


def _hub_c(root: Path) -> None:
    for config in ("fog", "snow"):
        for severity in (1, 2):
            layouts.parquet(root / config / f"severity_{severity}-00000-of-00001.parquet")


def _validation(root: Path) -> None:
    (root / "val").mkdir(parents=True)
    for number, pixels in enumerate(layouts.PIXELS[:4], 1):
        Image.fromarray(pixels).save(root / "val" / f"ILSVRC2012_val_{number:08d}.JPEG")
    (root / "ILSVRC2012_validation_ground_truth.txt").write_text("490\n361\n171\n822\n")


def _cifar_c(root: Path) -> None:
    root.mkdir()
    np.save(root / "labels.npy", np.tile(np.arange(3), 5))
    np.save(root / "fog.npy", np.tile(layouts.PIXELS[:3], (5, 1, 1, 1)))


def _imagenet_r(root: Path) -> None:
    for number, wnid in enumerate(("n01443537", "n01484850")):
        (root / wnid).mkdir(parents=True)
        (root / wnid / "art_0.png").write_bytes(layouts.encode(layouts.PIXELS[number]))


def _turned(root: Path) -> None:
    layouts.class_folders(root)
    about = Image.Exif()
    about[0x0112] = 6
    Image.fromarray(layouts.PIXELS[0][:20]).save(root / "ant" / "turned.jpg", exif=about)


def _everything(root: Path) -> None:
    """Make what the table names."""
    layouts.class_folders(root / "val")
    _photos(root / "photos")
    layouts.table(root)
    layouts.parquet(root / "hub" / "data" / "test-00000-of-00001.parquet")
    _hub_c(root / "hub-c")
    layouts.saved_dataset(root / "saved")
    for number in range(2):
        layouts.tar(root / f"shard-00{number}.tar")
    _validation(root / "ILSVRC")
    layouts.cifar_binary(root / "cifar-10-batches-bin")
    layouts.npz(root / "images.npz")
    for part in ("fog/1", "fog/2", "snow/1", "snow/2"):
        layouts.class_folders(root / "imagenet-c" / part)
    _cifar_c(root / "cifar-c")
    for domain in ("photo", "sketch"):
        layouts.class_folders(root / "domains" / domain)
    (root / "my_data.py").write_text(
        "from tests.data.layouts import LABELS, PIXELS\n\n\ndef validation():\n"
        "    return [(image.transpose(2, 0, 1), label) for image, label in zip(PIXELS, LABELS)]\n"
    )
    _imagenet_r(root / "imagenet-r")
    (root / "classes.csv").write_text("class,accepted\nant,2\nbee,0 1\n")
    layouts.class_folders(root / "mixed")
    Image.new("RGB", (50, 40)).save(root / "mixed" / "ant" / "large.png")
    _turned(root / "turned")
    layouts.class_folders(root / "damaged")
    (root / "damaged" / "ant" / "000.png").write_bytes(b"no image")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("guide")
    _everything(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("HAPTERA_CACHE", str(folder / "cache"))
        yield folder


def test_the_table_has_lines():
    assert len(LINES) > 20


@pytest.mark.parametrize("line", LINES)
def test_a_line_of_the_table_runs(line, place):
    words = shlex.split(line)
    channels = 1 if words[1] == "digits" else 3
    model = f"linear:channels={channels},size=32,classes={CLASSES.get(words[1], 3)}"
    parts = words[1] in ("hub-c", "imagenet-c", "cifar-c", "domains")
    stream = ["--stream", "directory" if parts else "clean"]
    out = f"out-{LINES.index(line)}"
    assert call("run", "--model", model, *words, *stream, "--adapter", "none", "--out", out, "--quiet") == 0
