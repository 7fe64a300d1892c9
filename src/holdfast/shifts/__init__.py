"""Shifts: how images change."""

from holdfast.shifts.base import Shift
from holdfast.shifts.blur import GaussianBlur, MotionBlur, ZoomBlur
from holdfast.shifts.colour import Brightness, Saturate
from holdfast.shifts.defocus import DefocusBlur
from holdfast.shifts.digital import Contrast, JpegCompression, Pixelate
from holdfast.shifts.elastic import ElasticTransform
from holdfast.shifts.glass import GlassBlur
from holdfast.shifts.noise import GaussianNoise, ImpulseNoise, ShotNoise, SpeckleNoise
from holdfast.shifts.random import SampleRandom
from holdfast.shifts.weather import Fog, Frost, Snow, Spatter

__all__ = [
    "Brightness",
    "Contrast",
    "DefocusBlur",
    "ElasticTransform",
    "Fog",
    "Frost",
    "GaussianBlur",
    "GaussianNoise",
    "GlassBlur",
    "ImpulseNoise",
    "JpegCompression",
    "MotionBlur",
    "Pixelate",
    "SampleRandom",
    "Saturate",
    "Shift",
    "ShotNoise",
    "Snow",
    "Spatter",
    "SpeckleNoise",
    "ZoomBlur",
]
