"""Shifts one after another are one shift: the parts by hand, each with randomness of its own."""

import pickle
from dataclasses import FrozenInstanceError, dataclass, replace
from functools import partial
from typing import ClassVar

import numpy as np
import pytest
import torch

from haptera.data import ArrayData
from haptera.errors import HapteraError
from haptera.files.fingerprint import fingerprint
from haptera.run.materialise import materialise
from haptera.shifts import Compose, Contrast, Fog, GaussianNoise, JpegCompression, MotionBlur, Pixelate, Shift
from haptera.streams import Continual, Correlated, Corruptions, Gradual, Mixed, Shifted
from haptera.testing import check_object

IMAGES = torch.rand(6, 3, 16, 20, generator=torch.Generator().manual_seed(0))
IDS = torch.tensor([3, 1, 4, 15, 92, 65])
DATA = ArrayData(np.random.default_rng(0).random((12, 8, 8)).astype(np.float32), np.arange(12) % 3, "small")


def noise_of(shift: Shift, seed: int = 0, samples: int = 40) -> np.ndarray:
    """What a shift adds to grey images far from black and white, in the order of samples and pixels."""
    grey = torch.full((samples, 1, 32, 32), 0.5)
    return (shift(grey, seed=seed) - grey).numpy().ravel()


@pytest.mark.parametrize(
    "parts",
    [
        (Fog(2), JpegCompression(3)),
        (GaussianNoise(1.5), MotionBlur(4), Pixelate(2, table="cifar")),
        (Contrast(0), Fog(3)),
        (Fog(3),),
    ],
    ids=lambda parts: "+".join(part.name for part in parts),
)
def test_it_is_its_parts_applied_by_hand(parts):
    by_hand = IMAGES
    for part in parts:
        by_hand = part(by_hand, IDS, 7)
    assert torch.equal(Compose(parts)(IMAGES, IDS, 7), by_hand)
    assert not torch.equal(by_hand, IMAGES)


def test_order_matters():
    there, back = Compose([Contrast(5), GaussianNoise(3)]), Compose([GaussianNoise(3), Contrast(5)])
    assert not torch.allclose(there(IMAGES), back(IMAGES), atol=0.05)


def test_two_equal_noises_are_independent():
    # Independent deviates add in square: √2 times one of them, where the same ones twice are 2 times it.
    small = GaussianNoise(0.25)  # standard deviation .02: nothing is clamped
    once, twice = noise_of(small), noise_of(Compose([small, small]))
    second = twice - once
    assert twice.std() == pytest.approx(np.sqrt(2) * once.std(), rel=0.02)
    assert second.std() == pytest.approx(once.std(), rel=0.02)
    assert abs(np.corrcoef(once, second)[0, 1]) < 5 / np.sqrt(len(once))


def test_repeated_parts_share_nothing_with_each_other_or_with_other_seeds():
    small = GaussianNoise(0.25)
    three = Compose([small, small, small])
    alone = [noise_of(small, seed) for seed in range(-2, 4)]
    first_two = noise_of(Compose([small, small]))
    second, third = first_two - alone[2], noise_of(three) - first_two
    drawn = np.corrcoef([*alone, second, third])
    assert np.abs(drawn - np.eye(len(drawn))).max() < 5 / np.sqrt(len(second))


@pytest.mark.parametrize("cut", [1, 4])
def test_repeated_noises_do_not_depend_on_how_the_batch_is_cut(cut):
    shift = Compose([GaussianNoise(2), Fog(1), GaussianNoise(2)])
    pieces = [shift(images, ids, 5) for images, ids in zip(IMAGES.split(cut), IDS.split(cut), strict=True)]
    assert torch.equal(torch.cat(pieces), shift(IMAGES, IDS, 5))


def test_composites_inside_are_taken_apart():
    parts = [GaussianNoise(1), Fog(2), GaussianNoise(3)]
    nested, flat = Compose([Compose(parts[:2]), parts[2]]), Compose(parts)
    assert nested == flat
    assert torch.equal(nested(IMAGES, IDS), flat(IMAGES, IDS))


def test_name_severity_and_table_come_from_the_parts():
    mixed = Compose([Fog(2), JpegCompression(3, table="cifar")])
    assert (mixed.name, mixed.severity, mixed.table) == ("fog+jpeg_compression", 3.0, "imagenet+cifar")
    assert Compose([Fog(1), Fog(4)]).table == "imagenet"


def test_another_severity_scales_the_parts_in_proportion():
    shift = Compose([Fog(4), JpegCompression(2, table="cifar"), Contrast(0)])
    assert shift.at(4) == shift
    assert shift.at(2) == Compose([Fog(2), JpegCompression(1, table="cifar"), Contrast(0)])
    assert shift.at(5, table="imagenet") == Compose([Fog(5), JpegCompression(2.5), Contrast(0)])
    assert Compose([Fog(0), Contrast(0)]).at(3) == Compose([Fog(3), Contrast(3)])


def test_it_is_the_identity_only_where_all_parts_are():
    still = Compose([Fog(0), GaussianNoise(0)])
    assert torch.equal(still(IMAGES), IMAGES)
    assert still(IMAGES) is not IMAGES
    assert not torch.equal(Compose([Fog(0), GaussianNoise(1)])(IMAGES), IMAGES)


def test_it_is_a_value():
    shift = Compose([Fog(2), JpegCompression(3)])
    assert shift == Compose((Fog(2), JpegCompression(3)))
    assert len({shift, Compose([Fog(2), JpegCompression(3)]), Compose([Fog(2), JpegCompression(4)])}) == 2
    assert eval(repr(shift)) == shift
    assert pickle.loads(pickle.dumps(shift)).severity == 3
    assert replace(shift, shifts=[Fog(5)]).severity == 5
    with pytest.raises(FrozenInstanceError):
        shift.severity = 4


@pytest.mark.parametrize("wrong", [[], (), Fog(2), Fog, "fog", None], ids=repr)
def test_anything_but_a_list_of_shifts_is_refused(wrong):
    with pytest.raises(HapteraError, match="Compose takes a list of shifts, such as"):
        Compose(wrong)


@pytest.mark.parametrize(("wrong", "found"), [(Fog, "the class Fog"), ("fog", "'fog'"), (torch.relu, "relu")])
def test_what_is_no_shift_is_named_with_its_place(wrong, found):
    with pytest.raises(HapteraError, match=f"shift 2 of Compose is .*{found}.*; a shift such as Fog"):
        Compose([Contrast(1), wrong])


@pytest.mark.parametrize("severity", [-0.1, 5.01, float("nan"), "3", True])
def test_another_severity_that_is_none_is_refused(severity):
    with pytest.raises(HapteraError, match=r"severity of contrast\+fog"):
        Compose([Contrast(1), Fog(2)]).at(severity)


def test_images_are_refused_in_its_own_name():
    with pytest.raises(HapteraError, match=r"fog\+contrast takes images in \[0, 1\]"):
        Compose([Fog(1), Contrast(1)])(IMAGES + 1)


def test_a_stream_under_it_says_so():
    shift = Compose([GaussianNoise(2), Pixelate(4)])
    for stream in (Shifted(DATA, shift), Correlated(DATA, shift)):
        batch = stream[0]
        known = {key: np.unique(value).tolist() for key, value in batch.context.items()}
        assert known == {"shift": ["gaussian_noise+pixelate"], "severity": [4.0]}
        clean = DATA.images(np.searchsorted(DATA.rows, batch.ids.numpy()))
        assert torch.equal(batch.inputs, shift(clean, batch.ids, stream.seed))
    assert Shifted(DATA, shift).label == "gaussian_noise+pixelate 4"


def test_at_stands_wherever_a_stream_takes_a_class():
    make = Compose([GaussianNoise(5), Contrast(2.5)]).at
    parts = Corruptions(DATA, [Fog, make], (2, 4)).parts()
    both = "gaussian_noise+contrast"
    assert [part.label for part in parts] == ["fog 2", "fog 4", f"{both} 2", f"{both} 4"]
    assert parts[2].by == Compose([GaussianNoise(2), Contrast(1)])
    for stream in (Continual(DATA, [Fog, make]), Gradual(DATA, [Fog, make]), Mixed(DATA, [Fog, make])):
        seen = {name for batch in stream for name in np.atleast_1d(batch.context["shift"])}
        assert seen == {"fog", both}


def test_streams_of_different_composites_are_different_cells():
    one, two = Compose([Fog(5), Contrast(2)]), Compose([Fog(2), Contrast(5)])
    assert fingerprint(one) != fingerprint(two)
    prints = [Continual(DATA, [shift.at]).fingerprint() for shift in (one, two, Compose([Fog(5), Contrast(2)]))]
    assert prints[0] == prints[2] != prints[1]


@dataclass(frozen=True)
class Murk(Shift):
    """Fog and JPEG under a name of their own, for files and commands that know shifts by name."""

    name: ClassVar[str] = "murk"

    def apply(self, images, random):
        make = partial(Compose([Fog(5), JpegCompression(3)]).at, table=self.table)
        return make(self.severity).apply(images, random)


def test_a_class_of_its_own_names_it_on_disk(tmp_path):
    assert torch.equal(Murk(2)(IMAGES, IDS, 4), Compose([Fog(2), JpegCompression(1.2)])(IMAGES, IDS, 4))
    assert materialise(DATA, [Murk], tmp_path, severities=[1]).written == ["murk/1"]
    for wrong in (Compose([Fog(1)]), Compose([Fog(1)]).at):
        with pytest.raises(HapteraError, match=r"shifts to materialise are classes, such as Fog; found .*Compose"):
            materialise(DATA, [wrong], tmp_path)


def test_a_shift_with_settings_can_be_checked_as_it_is():
    kind, broken = check_object(Compose([Fog(2), GaussianNoise(3), GaussianNoise(3)]))
    assert kind == "shift"
    assert not any(broken.values())
