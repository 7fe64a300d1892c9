"""Recordings: signals with labels, trials and times; reading and preparing them needs no torch."""

from haptera.recordings.label import Label
from haptera.recordings.reading import Source, read_recording
from haptera.recordings.recording import Recording

__all__ = ["Label", "Recording", "Source", "read_recording"]
