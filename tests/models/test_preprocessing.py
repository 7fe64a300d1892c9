"""What a configuration or a person says about the inputs of a model."""

import pytest

from haptera.errors import HapteraError
from haptera.models.preprocessing import Preprocessing, read_normalisation


@pytest.mark.parametrize(
    ("text", "mean", "std"),
    [
        ("imagenet", (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
        ("half", (0.5,), (0.5,)),
        ("none", None, None),
        ("0.1/0.2", (0.1,), (0.2,)),
        ("0.1,0.2,0.3/1,2,3", (0.1, 0.2, 0.3), (1.0, 2.0, 3.0)),
    ],
)
def test_a_normalisation_as_a_person_writes_it(text, mean, std):
    assert read_normalisation(text) == (mean, std)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("imagnet", "did you mean 'imagenet'"),
        ("0.5", "MEAN/STD"),
        ("0.5/0", "std is 0.0"),
        ("0.1,0.2/0.1,0.2", "1 or 3 of each"),
        ("0.5/0.1,0.2,0.3", "mean has 1 values and std 3"),
        ("nan/0.5", "mean is nan"),
        ("a/b", "MEAN/STD"),
    ],
)
def test_a_normalisation_that_makes_no_sense_is_refused(text, why):
    with pytest.raises(HapteraError, match=f"normalise is '{text}'.*{why}"):
        read_normalisation(text)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"mean": (0.5,)}, "a mean and no std"),
        ({"std": (0.5,)}, "a std and no mean"),
        ({"size": 0}, "size is 0"),
        ({"crop": 1.5}, "crop is 1.5"),
        ({"crop": "squeeze"}, "squash"),
        ({"interpolation": "bicubc"}, "did you mean 'bicubic'"),
    ],
)
def test_preprocessing_that_makes_no_sense_is_refused(given, why):
    with pytest.raises(HapteraError, match=why):
        Preprocessing(**given)


def test_what_is_not_known_about_resizing_is_the_usual():
    resize = Preprocessing(size=64, interpolation="bicubic").resize()
    assert (resize.size, resize.crop, resize.interpolation) == (64, 0.875, "bicubic")
