"""Embed: contrastive embeddings of recordings, and the scores and controls that go with them.

Names are imported when first used, so that reading and scoring need no torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING

_HOME = {
    "ContrastiveEmbedding": "estimator",
    "Label": "label",
    "Recording": "recording",
    "read_recording": "reading",
}
__all__ = [*_HOME]

if TYPE_CHECKING:
    from holdfast.embed.estimator import ContrastiveEmbedding as ContrastiveEmbedding
    from holdfast.embed.label import Label as Label
    from holdfast.embed.reading import read_recording as read_recording
    from holdfast.embed.recording import Recording as Recording


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'holdfast.embed' has no attribute {name!r}")
    return getattr(import_module(f"holdfast.embed.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
