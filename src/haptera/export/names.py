"""Names that every target takes: letters, digits and `_.-` in parts between slashes, and no name for two things."""

import re
from collections.abc import Sequence

from haptera.files.fingerprint import fingerprint

LONGEST = 200
"""Letters of a name; MLflow takes 250."""
OTHER = re.compile(r"[^\w.-]+")


class Names:
    """Gives each thing a name, and never the same to two."""

    def __init__(self) -> None:
        self._given: dict[tuple[str, ...], str] = {}
        self._taken: set[str] = set()

    def __call__(self, parts: Sequence[str]) -> str:
        """Return the name of what is described by parts, those that are empty left out.

        >>> names = Names()
        >>> names(["ccc", "", "a/b", "accuracy"]), names(["ccc", "", "a=b", "accuracy"])
        ('ccc/a_b/accuracy', 'ccc/a_b/accuracy-...')
        """
        whole = tuple(parts)
        if whole not in self._given:
            name = "/".join(clean(part) for part in whole if part)
            if name in self._taken or not 0 < len(name) <= LONGEST:
                name = f"{name[:LONGEST]}-{fingerprint(whole)[:6]}"
            self._given[whole] = name
            self._taken.add(name)
        return self._given[whole]


def clean(part: str) -> str:
    """Return a part of a name without what a target would refuse.

    >>> clean("tent:lr=1e-3, steps=2"), clean("..")
    ('tent_lr_1e-3_steps_2', '__')
    """
    text = OTHER.sub("_", part)
    return text if text.strip(".") else "_" * len(text)


def file_name(text: str) -> str:
    """Return a name for a file or a folder, one for each text.

    >>> file_name("net"), file_name("net · tent:lr=1e-3")
    ('net', 'net-tent-lr-1e-3-...')
    """
    name = re.sub(r"[^A-Za-z0-9_.]+", "-", text).strip("-.")[:80]
    return name if name and name == text else f"{name}-{fingerprint(text)[:6]}".lstrip("-")
