"""Shifts: how images change."""

from haptera.shifts.augmentation import MaiteAugmentation
from haptera.shifts.base import MakeShift, SampleRandom, Shift
from haptera.shifts.blur import GaussianBlur, MotionBlur, ZoomBlur
from haptera.shifts.colour import Brightness, Saturate
from haptera.shifts.compose import Compose
from haptera.shifts.defocus import DefocusBlur
from haptera.shifts.diffeo import Diffeo
from haptera.shifts.digital import Contrast, JpegCompression, Pixelate
from haptera.shifts.elastic import ElasticTransform
from haptera.shifts.glass import GlassBlur
from haptera.shifts.noise import GaussianNoise, ImpulseNoise, ShotNoise, SpeckleNoise, sphere_noise, squared_changes
from haptera.shifts.sine_fields import SineFields
from haptera.shifts.weather import Fog, Frost, Snow, Spatter

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
    "MaiteAugmentation",
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
