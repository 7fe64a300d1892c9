import warnings

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader, TensorDataset

from haptera.data import ArrayData, ItemData, digits, open_data
from haptera.errors import HapteraError
from haptera.shifts import GaussianNoise

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from maite.protocols import image_classification as maite
    from maite.tasks import predict

PIXELS = np.random.default_rng(0).integers(0, 256, (6, 3, 8, 8), np.uint8)
LABELS = [0, 1, 2, 0, 1, 2]


class Foreign:
    """A data set as the protocols of MAITE describe it, from which images come one by one."""

    def __init__(self, ids=(10, 11, 12, 13, 14, 15), metadata=None):
        self.ids = ids
        self.metadata = metadata or {"id": "foreign", "index2label": {0: "ant", 1: "bee", 2: "cat"}}

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, index):
        return PIXELS[index], np.eye(3)[LABELS[index]], {"id": self.ids[index]}


class Fieldwise(Foreign):
    reads = 0

    def __getitem__(self, index):
        self.reads += 1
        return super().__getitem__(index)

    def get_input(self, index):
        return PIXELS[index]

    def get_target(self, index):
        return np.eye(3)[LABELS[index]]

    def get_metadata(self, index):
        return {"id": self.ids[index]}


def test_a_data_set_of_maite_comes_in_with_its_ids_and_names():
    foreign = Foreign()
    assert isinstance(foreign, maite.Dataset)
    data = ItemData(foreign)
    assert data.name == "foreign"
    assert data.rows.tolist() == list(foreign.ids)
    assert data.targets.tolist() == LABELS
    assert data.names == ("ant", "bee", "cat")
    torch.testing.assert_close(data.images(np.array([4, 1])), torch.from_numpy(PIXELS[[4, 1]]).float() / 255)


def test_labels_are_read_without_images_where_the_data_set_allows_that():
    data = Fieldwise()
    assert isinstance(data, maite.FieldwiseDataset)
    assert ItemData(data).targets.tolist() == LABELS
    assert data.reads == 1  # for the size of the images


def test_our_data_is_a_data_set_of_maite_and_survives_the_way_there_and_back():
    ours = digits(size=8)
    assert isinstance(ours, maite.Dataset)
    back = ItemData(ours)
    assert (back.name, back.names) == (ours.name, ours.names)
    np.testing.assert_array_equal(back.rows, ours.rows)
    np.testing.assert_array_equal(back.targets, ours.targets)
    torch.testing.assert_close(back.images(np.arange(5)), ours.images(np.arange(5)), rtol=0, atol=0)


def test_maite_reads_our_data_in_batches():
    class Bright:
        metadata = {"id": "bright"}  # noqa: RUF012

        def __call__(self, batch):
            return [np.array([np.asarray(image).mean(), 0.5]) for image in batch]

    ours = ArrayData(PIXELS, LABELS)
    predictions, _ = predict(model=Bright(), dataset=ours, batch_size=4)
    means = [row[0] for batch in predictions for row in batch]
    np.testing.assert_allclose(means, (PIXELS / 255).mean((1, 2, 3)), rtol=1e-5)


def test_a_data_set_of_pytorch_comes_in_and_ours_goes_into_its_loader():
    theirs = TensorDataset(torch.from_numpy(PIXELS), torch.tensor(LABELS))
    data = ItemData(theirs)
    assert data.targets.tolist() == LABELS
    assert data.rows.tolist() == list(range(6))
    images, targets, about = next(iter(DataLoader(data, batch_size=3)))
    torch.testing.assert_close(images, torch.from_numpy(PIXELS[:3]).float() / 255)
    assert targets.argmax(1).tolist() == LABELS[:3]
    assert about["id"].tolist() == [0, 1, 2]


def test_pictures_of_pillow_are_read_as_torchvision_gives_them():
    pictures = [(Image.fromarray(image.transpose(1, 2, 0)), label) for image, label in zip(PIXELS, LABELS, strict=True)]
    torch.testing.assert_close(ItemData(pictures).images(np.arange(6)), torch.from_numpy(PIXELS).float() / 255)
    grey = ItemData([(picture.convert("L"), label) for picture, label in pictures], channels=3)
    assert grey.images(np.arange(2)).shape == (2, 3, 8, 8)


def test_the_fingerprint_follows_images_and_labels_not_the_object():
    same = ItemData(Foreign()).fingerprint()
    assert ItemData(Foreign()).fingerprint() == same
    items = [Foreign()[index] for index in range(6)]
    assert ItemData([(image, target) for image, target, _ in items]).fingerprint() != same
    other = PIXELS.copy()
    other[5, 0, 0, 0] ^= 1
    changed = [(image, label) for image, label in zip(other, LABELS, strict=True)]
    assert ItemData(changed).fingerprint() != ItemData(list(zip(PIXELS, LABELS, strict=True))).fingerprint()


def test_shifts_draw_their_randomness_by_the_ids_of_the_data_set():
    noise = GaussianNoise(3)
    data, shuffled = ItemData(Foreign()), ItemData(Foreign((15, 14, 13, 12, 11, 10)))
    images = data.images(np.array([0]))
    first = noise(images, torch.from_numpy(data.rows[:1]), 0)
    assert not torch.equal(first, noise(images, torch.from_numpy(shuffled.rows[:1]), 0))


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ([], "holds no images"),
        (7, "an? int is not a sequence of items"),
        ([PIXELS[0]], "item 0 is a ndarray; "),
        ([(PIXELS[0].transpose(1, 2, 0), 0)], r"image 0 has shape \(8, 8, 3\); \(1 or 3, height, width\)"),
        ([(PIXELS[0], 0), (PIXELS[1], None)], "item 1 has no target"),
        ([(PIXELS[0], 0.5)], "the target of item 0 is 0.5"),
        ([(PIXELS[0].astype(int), 0)], "images are int64"),
    ],
)
def test_items_of_another_kind_are_refused(items, message):
    with pytest.raises(HapteraError, match=message):
        ItemData(items).images(np.array([0]))


def test_images_of_several_sizes_are_refused_by_number():
    data = ItemData([(PIXELS[0], 0), (PIXELS[1, :, :4], 1)])
    with pytest.raises(HapteraError, match=r"image 1 has shape \(3, 4, 8\)"):
        data.images(np.array([0, 1]))


def test_data_without_labels():
    assert ItemData([(image, None) for image in PIXELS]).targets is None


def test_open_data_calls_a_function_of_a_file(tmp_path):
    place = tmp_path / "mine.py"
    place.write_text(
        "import numpy as np\n"
        "def validation():\n"
        "    return [(np.full((3, 8, 8), 51, np.uint8), 4), (np.zeros((3, 8, 8), np.uint8), 1)]\n"
    )
    data = open_data(f"{place}:validation")
    assert data.targets.tolist() == [4, 1]
    assert data.images(np.array([0])).unique().tolist() == pytest.approx([0.2])
    with pytest.raises(HapteraError, match="come as they are"):
        open_data(f"{place}:validation", size=32)
    with pytest.raises(HapteraError, match=r"valdation.*did you mean 'validation'"):
        open_data(f"{place}:valdation")
