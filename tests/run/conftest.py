"""The small network that knows digits, and its calibration, are those of the streams."""

from tests.streams.conftest import calibrated, data, model

__all__ = ["calibrated", "data", "model"]
