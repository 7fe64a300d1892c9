"""Preflight of a study: every model on the images of its streams before the first cell, kept in the study's folder.

A preflight that was made of the same model and the same images is not made again.
"""

import logging
from collections.abc import Iterable
from pathlib import Path

from torch import nn

from haptera.analyses.preflight.analysis import Preflight, check_model
from haptera.analysis import RESULT
from haptera.batch import Stream
from haptera.data import CorruptedImages, Data
from haptera.errors import HapteraError, first_line
from haptera.files.fingerprint import fingerprint, of_model
from haptera.files.json import read_json
from haptera.run.protocol import preflight_folder

log = logging.getLogger("haptera")


class StudyPreflight:
    """Checks the models of a study, one when it is called with its name.

    Args:
        streams: of the study; the first with data decides which images are looked at.
        folder: of the study.
    """

    def __init__(self, streams: Iterable[Stream], folder: Path) -> None:
        self.folder = folder
        self.data, self.note = images_of(streams)

    def __call__(self, name: str, model: nn.Module) -> None:
        """Check a model and keep what was found; an error where its results would mean nothing."""
        if self.data is None:
            return
        place, key = preflight_folder(self.folder, name), fingerprint(of_model(model), self.data)
        if _known(place) != key:
            try:
                found = check_model(model, self.data, name=name, notes=[self.note] if self.note else [], key=key)
            except Exception as error:  # a model may do anything; what it cannot do at all the study says itself
                log.debug("the preflight of %s failed", name, exc_info=True)
                why = str(error) if isinstance(error, HapteraError) else first_line(error)
                log.warning("model %s could not be checked: %s", name, why)
                return
            found.save(place)
            self._say(name, found)

    @staticmethod
    def _say(name: str, found: Preflight) -> None:
        for check in found.complaints:
            log.warning("model %s, %s: %s", name, check.word, check.sentence)
        if found.objections:
            raise HapteraError(
                f"model {name}: {found.objections[0]}; results would mean nothing (--no-check runs it all the same)"
            )


def images_of(streams: Iterable[Stream]) -> tuple[Data | None, str]:
    """Return the data that streams show, of corrupted data the mildest part, and what a reader must know about it."""
    for stream in streams:
        base: Stream | None = stream
        while base is not None:
            data = getattr(base, "data", None)
            if isinstance(data, Data):
                return data, ""
            if isinstance(data, CorruptedImages):
                part = min(data.parts, key=lambda each: each.severity if each.severity == each.severity else 0.0)
                return part.data, f"the images are not clean: they are {part.shift} of {data.name}"
            base = getattr(base, "stream", None)
    return None, ""


def _known(place: Path) -> str:
    """Return the key of the preflight that is there, or nothing."""
    try:
        settings = read_json(place / RESULT)["settings"] if (place / RESULT).is_file() else {}
        return str(settings.get("key", ""))
    except (HapteraError, KeyError, TypeError, AttributeError):
        return ""
