"""Recordings: signals with labels, trials and times; reading and preparing them needs no torch."""

from haptera.recordings.label import Label
from haptera.recordings.reading import read_recording
from haptera.recordings.recording import Recording

__all__ = ["Label", "Recording", "read_recording"]
