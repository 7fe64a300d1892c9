"""Piece: one thing that a folder of finished pieces holds, or will hold."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Piece:
    """One thing to finish.

    Attributes:
        key: fingerprint of everything that decides the piece, or a name that is enough within the plan.
        path: where it goes, relative to the folder; a file, or a folder of files.
        title: what people call it, such as `resnet · contrast 4 · batchnorm`.
        facts: what else the plan should say about it, JSON-like.
    """

    key: str
    path: str
    title: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)

    def entry(self) -> dict[str, Any]:
        """Return the piece as a plan holds it."""
        return {"key": self.key, "path": self.path, "title": self.title, "facts": self.facts}
