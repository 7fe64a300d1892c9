"""Dependencies: which classes a saved network derives from others, from its logits alone, without torch."""

from holdfast.dependencies.analysis import Analysis, analyse
from holdfast.dependencies.files import LogitsFile

__all__ = ["Analysis", "LogitsFile", "analyse"]
