"""Shifts: how images change."""

from holdfast.shifts.base import MakeShift, Shift
from holdfast.shifts.blur import GaussianBlur, MotionBlur, ZoomBlur
from holdfast.shifts.colour import Brightness, Saturate
from holdfast.shifts.compose import Compose
from holdfast.shifts.defocus import DefocusBlur
from holdfast.shifts.diffeo import Diffeo
from holdfast.shifts.digital import Contrast, JpegCompression, Pixelate
from holdfast.shifts.elastic import ElasticTransform
from holdfast.shifts.glass import GlassBlur
from holdfast.shifts.noise import GaussianNoise, ImpulseNoise, ShotNoise, SpeckleNoise
from holdfast.shifts.random import SampleRandom
from holdfast.shifts.sine_fields import SineFields
from holdfast.shifts.sphere import sphere_noise, squared_changes
from holdfast.shifts.weather import Fog, Frost, Snow, Spatter

__all__ = [
    "Brightness",
    "Compose",
    "Contrast",
    "DefocusBlur",
    "Diffeo",
    "ElasticTransform",
    "Fog",
    "Frost",
    "GaussianBlur",
    "GaussianNoise",
    "GlassBlur",
    "ImpulseNoise",
    "JpegCompression",
    "MakeShift",
    "MotionBlur",
    "Pixelate",
    "SampleRandom",
    "Saturate",
    "Shift",
    "ShotNoise",
    "SineFields",
    "Snow",
    "Spatter",
    "SpeckleNoise",
    "ZoomBlur",
    "sphere_noise",
    "squared_changes",
]
