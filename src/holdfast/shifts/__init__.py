"""Shifts: how images change."""

from holdfast.shifts.base import Shift
from holdfast.shifts.blur import GaussianBlur
from holdfast.shifts.digital import Contrast
from holdfast.shifts.noise import GaussianNoise
from holdfast.shifts.random import SampleRandom

__all__ = ["Contrast", "GaussianBlur", "GaussianNoise", "SampleRandom", "Shift"]
