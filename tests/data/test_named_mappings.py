import numpy as np
import pytest
from PIL import Image

from haptera.data import open_data
from haptera.data.named_mappings import NAMES, ilsvrc_index, named_mapping, wnid_index
from haptera.errors import HapteraError


def test_sizes_are_those_that_the_sets_are_known_for():
    sizes = {name: len(named_mapping(name)) for name in NAMES}
    assert sizes == {
        "imagenet": 1000,
        "imagenet-sketch": 1000,
        "imagenet-r": 200,
        "imagenet-a": 200,
        "imagenet-v2": 1000,
        "imagenet-d": 181,
        "objectnet": 113,
    }


def test_imagenet_d_has_the_164_groups_of_the_source():
    groups = named_mapping("imagenet-d")
    assert len(set(groups.values())) == 164
    assert groups["bird"] == (*range(7, 24), *range(80, 101))  # 38 by the published code; the text counts 39
    assert groups["swan"] == groups["bird"]  # an ambiguous class counts as the larger one
    assert groups["cell_phone"] == groups["telephone"]


@pytest.mark.parametrize("name", NAMES)
def test_classes_that_are_not_the_same_group_accept_different_predictions(name):
    groups = sorted(set(named_mapping(name).values()))
    every = np.concatenate([np.array(group) for group in groups])
    assert len(np.unique(every)) == len(every)
    assert 0 <= every.min() <= every.max() <= 999


def test_folders_of_v2_are_numbers_not_places_in_their_sorted_order():
    assert named_mapping("imagenet-v2")["10"] == (10,)


def test_known_classes():
    """Goldfish is class 1, the Band Aid 419, the great white shark 2; n02119789 is the kit fox, first in ILSVRC."""
    assert wnid_index()["n01443537"] == 1
    assert wnid_index()["n01484850"] == 2
    assert named_mapping("objectnet")["band_aid"] == (419,)
    assert ilsvrc_index()[1] == wnid_index()["n02119789"] == 278
    assert sorted(ilsvrc_index().values()) == list(range(1000))
    assert list(wnid_index()) == sorted(wnid_index())


def test_an_unknown_name_is_answered_with_the_nearest():
    with pytest.raises(HapteraError, match="imagenet-r"):
        named_mapping("imagenetr")


def test_a_folder_of_a_few_wnids_is_scored_by_name_among_the_classes_of_the_set(image_folders):
    """The folders come as classes 0 and 1; the model's outputs for them are 1 and 2, and only 200 may be predicted."""
    data = open_data(image_folders("n01443537", "n01484850"), mapping="imagenet-r")
    assert data.classes.accepted == ((1,), (2,))
    assert data.classes.restrict
    assert not open_data(image_folders("n01443537"), mapping="imagenet-r", restrict=False).classes.restrict


def test_folders_of_v2_are_scored_by_their_number(image_folders):
    data = open_data(image_folders("2", "10"), mapping="imagenet-v2")
    assert dict(zip(data.names, data.classes.accepted, strict=True)) == {"2": (2,), "10": (10,)}
    assert not data.classes.restrict


def test_a_missing_mapping_is_answered_with_the_nearest_name(image_folders):
    with pytest.raises(HapteraError, match=r"no file imagenetr; did you mean 'imagenet-r'\?"):
        open_data(image_folders("2"), mapping="imagenetr")


@pytest.fixture
def image_folders(tmp_path):
    def make(*names):
        root = tmp_path / "_".join(names)
        for name in names:
            (root / name).mkdir(parents=True, exist_ok=True)
            Image.new("RGB", (8, 8)).save(root / name / "one.png")
        return root

    return make
