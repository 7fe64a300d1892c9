"""Dependencies: which classes a saved network derives from others, from its logits alone, without torch."""

from haptera.analyses.dependencies.analysis import Analysis, analyse
from haptera.analyses.dependencies.files import LogitsFile

__all__ = ["Analysis", "LogitsFile", "analyse"]
