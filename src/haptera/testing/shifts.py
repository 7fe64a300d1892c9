"""The laws of shifts."""

import random
from collections.abc import Callable

import numpy as np
import torch

from haptera.errors import HapteraError
from haptera.shifts import Shift
from haptera.testing.law import Broken, demand, run_laws

ROUNDING = 1e-5
"""How much two images in [0, 1] may differ and be the same: the last bit of a position among 64 pixels is 4e-6."""

SIZES = ((1, 1), (1, 2), (2, 1), (2, 2), (3, 3), (1, 300), (300, 2))
"""Heights and widths of images that are small, or narrow."""


def keeps_shape_dtype_and_range(shift: Shift, images: torch.Tensor, ids: torch.Tensor, seed: int) -> None:
    """Shape and dtype stay, values stay in [0, 1], the input is not written to."""
    before = images.clone()
    shifted = shift(images, ids, seed)
    demand(shifted.shape == images.shape, f"{tuple(images.shape)} became {tuple(shifted.shape)}")
    demand(shifted.dtype == images.dtype, f"{images.dtype} became {shifted.dtype}")
    low, high = float(shifted.min()), float(shifted.max())
    demand(low >= 0 and high <= 1, f"values from {low:g} to {high:g}")
    demand(torch.equal(images, before), "the input was written to")


def severity_zero_is_the_identity(shift: Shift, images: torch.Tensor, ids: torch.Tensor, seed: int) -> None:
    """At severity 0 nothing changes."""
    still = shift.at(0)
    demand(torch.equal(still(images, ids, seed), images), "severity 0 changed the images")


def same_seed_same_images(shift: Shift, images: torch.Tensor, ids: torch.Tensor, seed: int) -> None:
    """Two calls with the same seed agree."""
    demand(torch.equal(shift(images, ids, seed), shift(images, ids, seed)), "two calls with one seed differ")


def does_not_depend_on_batches(shift: Shift, images: torch.Tensor, ids: torch.Tensor, seed: int) -> None:
    """Cut into batches of any size and order, the images are the same, but for rounding.

    On some CPUs the last bit of a matrix product depends on the size of the matrix.
    """
    together = shift(images, ids, seed)
    for size in (1, 3):
        pieces = [shift(*piece, seed) for piece in zip(images.split(size), ids.split(size), strict=True)]
        demand(_same(torch.cat(pieces), together), f"batches of {size} give other images than one batch")
    demand(_same(shift(images.flip(0), ids.flip(0), seed).flip(0), together), "the order in a batch matters")


def _same(one: torch.Tensor, two: torch.Tensor) -> bool:
    return torch.allclose(one, two, rtol=0, atol=ROUNDING)


def leaves_global_generators_alone(shift: Shift, images: torch.Tensor, ids: torch.Tensor, seed: int) -> None:
    """No global random generator is read or written."""
    before = _states()
    first = shift(images, ids, seed)
    demand(_states() == before, "a global random generator was advanced")
    with torch.random.fork_rng(devices=[]):
        kept, python = np.random.get_state(), random.getstate()  # noqa: NPY002
        torch.manual_seed(1)
        np.random.seed(1)  # noqa: NPY002
        random.seed(1)
        second = shift(images, ids, seed)
        np.random.set_state(kept)  # noqa: NPY002
        random.setstate(python)
    demand(torch.equal(first, second), "a global random generator was read")


def refuses_bad_images(shift: Shift, images: torch.Tensor, ids: torch.Tensor, seed: int) -> None:
    """Integers other than bytes, NaN and values outside [0, 1] are refused with an error of haptera's."""
    for wrong in ((images * 255).to(torch.int32), images + 2, torch.full_like(images, float("nan"))):
        try:
            shift(wrong, ids, seed)
        except HapteraError:
            continue
        demand(False, f"{wrong.dtype} images with values such as {float(wrong.flatten()[0]):g} were taken")


def bytes_agree_with_floats(shift: Shift, images: torch.Tensor, ids: torch.Tensor, seed: int) -> None:
    """Bytes, channels first or last, become what floats become, to within a grey level, and are not written to."""
    first = (images.float() * 255).round().to(torch.uint8)
    wanted = (shift(first.float() / 255, ids, seed) * 255).round()
    before, shifted = first.clone(), shift(first, ids, seed)
    demand(shifted.dtype == torch.uint8, f"bytes became {shifted.dtype}")
    demand(shifted.shape == first.shape, f"{tuple(first.shape)} became {tuple(shifted.shape)}")
    away = float((shifted - wanted).abs().max())
    demand(away <= 1, f"bytes are {away:g} grey levels from floats")
    demand(torch.equal(first, before), "the bytes were written to")
    last = shift(first.permute(0, 2, 3, 1).contiguous().numpy(), ids, seed)
    demand(isinstance(last, np.ndarray) and last.dtype == np.uint8, "an array of bytes became something else")
    away = float((torch.from_numpy(last).permute(0, 3, 1, 2) - wanted).abs().max())
    demand(away <= 1, f"bytes with channels last are {away:g} grey levels from floats")


def bytes_do_not_depend_on_batches(shift: Shift, images: torch.Tensor, ids: torch.Tensor, seed: int) -> None:
    """Bytes cut into batches of any size are the same, but for a grey level where floats are near a half."""
    first = (images.float() * 255).round().to(torch.uint8)
    together = shift(first, ids, seed).int()
    for size in (1, 3):
        pieces = [shift(*piece, seed) for piece in zip(first.split(size), ids.split(size), strict=True)]
        away = int((torch.cat(pieces).int() - together).abs().max())
        demand(away <= 1, f"batches of {size} give bytes {away} grey levels from those of one batch")
    demand(torch.equal(shift(first, ids, seed).int(), together), "two calls with one seed give other bytes")


def takes_small_and_narrow_images(shift: Shift, images: torch.Tensor, ids: torch.Tensor, seed: int) -> None:
    """Images of any size are shifted, or refused with an error of haptera's that says how large they must be."""
    for height, width in SIZES:
        rows, columns = (
            torch.arange(side) % there for side, there in zip((height, width), images.shape[2:], strict=True)
        )
        floats = images[:2].index_select(2, rows).index_select(3, columns)
        for some in (floats, (floats.float() * 255).round().to(torch.uint8)):
            what = f"images of {height} x {width} pixels in {some.dtype}"
            try:
                shifted = shift(some, ids[:2], seed)
            except HapteraError as error:
                demand("pixels" in str(error), f"{what} are refused without a word on their size: {error}")
                continue
            except Exception as error:
                raise Broken(f"{what} end in {type(error).__name__}: {error}") from error
            demand(shifted.shape == some.shape, f"{what} became {tuple(shifted.shape)}")
            demand(bool(shifted.isfinite().all()), f"{what} became values that are not finite")


SHIFT_LAWS = (
    keeps_shape_dtype_and_range,
    severity_zero_is_the_identity,
    same_seed_same_images,
    does_not_depend_on_batches,
    leaves_global_generators_alone,
    refuses_bad_images,
    bytes_agree_with_floats,
    bytes_do_not_depend_on_batches,
    takes_small_and_narrow_images,
)


def example_images(channels: int = 3, height: int = 24, width: int = 32) -> torch.Tensor:
    """Five smooth random images."""
    generator = torch.Generator().manual_seed(0)
    small = torch.rand(5, channels, 6, 8, generator=generator)
    return torch.nn.functional.interpolate(small, (height, width), mode="bilinear")


def check_shift(kind: Callable[..., Shift]) -> dict[str, str]:
    """Every law on a class of shifts, or on `at` of a shift, at a few severities, on grey and colour images."""
    cases = [
        (kind(severity=severity), example_images(channels), torch.tensor([3, 1, 4, 15, 92]), 7)
        for severity in (0.5, 3, 5)
        for channels in (1, 3)
    ]
    return run_laws(SHIFT_LAWS, cases)


def _states() -> tuple[bytes, bytes, str]:
    return (
        torch.random.get_rng_state().numpy().tobytes(),
        np.random.get_state()[1].tobytes(),  # type: ignore[index]  # noqa: NPY002
        repr(random.getstate()),
    )
