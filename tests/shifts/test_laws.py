"""Every shift keeps every law; a new shift is in the list because it is in the catalog."""

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from haptera.catalog import entries, find
from haptera.errors import HapteraError
from haptera.shifts import Compose, GaussianNoise, JpegCompression
from haptera.testing.shifts import SHIFT_LAWS, check_shift

SHIFTS = [find("shifts", name) for name in entries("shifts")]
COMPOSED = Compose([GaussianNoise(4), JpegCompression(3), GaussianNoise(5)]).at  # no class, so not in the catalog
NOT_MONOTONE = {
    "glass_blur": "severity 2 has one iteration instead of two; at 32 pixels the offsets of all severities round to 1",
    "zoom_blur": "severity 5 takes larger steps, so fewer copies, than severity 4",
    "fog": "severity 4 is as strong as severity 3, only with more detail",
    "frost": "severity 4 has as much frost as severity 3 and less of the image, which can be nearer to it",
    "saturate": "severities 1 and 2 take colour away, 3 and above add it",
    "elastic_transform": "severities 1 and 2 are mostly an affine map, 3 and above small wrinkles",
}


LONG = {"bytes_agree_with_floats": pytest.mark.long}  # kernels are compiled first
NAMES = [law.__name__ for law in SHIFT_LAWS]


@pytest.mark.parametrize("shift", [*SHIFTS, COMPOSED], ids=lambda shift: getattr(shift, "name", "composed"))
@pytest.mark.parametrize("law", [pytest.param(law, marks=LONG.get(law.__name__, ())) for law in SHIFT_LAWS], ids=NAMES)
@settings(max_examples=15, deadline=None)
@given(
    severity=st.floats(0, 5, allow_subnormal=False),
    channels=st.sampled_from([1, 3]),
    height=st.integers(8, 40),
    width=st.integers(8, 40),
    seed=st.integers(-(2**63), 2**63),
    first=st.integers(0, 2**40),
)
def test_law_holds(law, shift, severity, channels, height, width, seed, first):
    images = torch.rand(5, channels, height, width, generator=torch.Generator().manual_seed(0))
    law(shift(severity), images, torch.arange(first, first + 5), seed)


@pytest.mark.parametrize("shift", SHIFTS, ids=lambda shift: shift.name)
def test_public_check_passes(shift):
    assert not any(check_shift(shift).values())


@pytest.mark.parametrize("shift", SHIFTS, ids=lambda shift: shift.name)
def test_catalog_name_is_the_class_name(shift):
    assert find("shifts", shift.name) is shift


@pytest.mark.parametrize("shift", SHIFTS, ids=lambda shift: shift.name)
@pytest.mark.parametrize("severity", [-0.1, float("inf"), float("nan"), "3", True])
def test_wrong_severity_is_refused(shift, severity):
    with pytest.raises(HapteraError, match=f"severity of {shift.name}"):
        shift(severity)


@pytest.mark.parametrize("shift", [shift for shift in SHIFTS if shift.name != "diffeo"], ids=lambda shift: shift.name)
def test_severity_above_5_is_refused_but_for_diffeo_whose_severity_is_in_pixels(shift):
    with pytest.raises(HapteraError, match=rf"severity of {shift.name} is 5.01; a number from 0 to 5 was expected"):
        shift(5.01)


@pytest.mark.parametrize("shift", SHIFTS, ids=lambda shift: shift.name)
def test_change_grows_with_severity(shift):
    images = torch.rand(8, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    changes = [float((shift(severity)(images) - images).square().mean()) for severity in (0, 1, 2, 3, 4, 5)]
    assert (changes == sorted(changes)) == (shift.name not in NOT_MONOTONE)
    assert changes[0] == 0 < changes[1]


def test_docs_name_the_shifts_whose_change_does_not_always_grow():
    page = (Path(__file__).parents[2] / "docs" / "guides" / "shifts.md").read_text(encoding="utf-8")
    paragraph = page.split("does not grow at every step")[1].split("##")[0]
    assert all(f"**{name}**" in paragraph for name in NOT_MONOTONE)


def test_wrong_shapes_and_ids_are_refused():
    shift = SHIFTS[0](3)
    with pytest.raises(HapteraError, match=r"found \(3, 8, 8\)"):
        shift(torch.rand(3, 8, 8))
    with pytest.raises(HapteraError, match=r"ids of shape \(2,\) for 3 images"):
        shift(torch.rand(3, 1, 8, 8), ids=[1, 2])
    with pytest.raises(HapteraError, match=r"or uint8, found torch\.int32"):
        shift(torch.zeros(3, 1, 8, 8, dtype=torch.int32))
    with pytest.raises(HapteraError, match="found float64 in an array"):
        shift(np.zeros((3, 1, 8, 8)))
    with pytest.raises(
        HapteraError, match=r"bytes \(batch, height, width, channels\) or channels first, found \(8, 8, 3\)"
    ):
        shift(np.zeros((8, 8, 3), np.uint8))
    with pytest.raises(HapteraError, match=r"ids of shape \(2,\) for 3 images"):
        shift(np.zeros((3, 8, 8, 3), np.uint8), ids=[1, 2])
    with pytest.raises(HapteraError, match="found NaN"):
        shift(torch.full((1, 1, 8, 8), float("nan")))


def test_double_precision_and_empty_batches_pass_through():
    for shift in SHIFTS:
        assert shift(2)(torch.rand(2, 1, 8, 8, dtype=torch.float64)).dtype == torch.float64
        assert shift(2)(torch.rand(0, 1, 8, 8)).shape == (0, 1, 8, 8)
