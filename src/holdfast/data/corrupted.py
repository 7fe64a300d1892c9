"""A data set that is corrupted already: a part per corruption and severity, the same samples in each."""

from dataclasses import dataclass

from holdfast.data.base import Data


@dataclass(frozen=True)
class CorruptedPart:
    """One corruption at one severity.

    Attributes:
        shift: the name of the corruption, such as `gaussian_noise`.
        severity: 1 to 5.
        data: its images; their rows are the same in every part.
    """

    shift: str
    severity: float
    data: Data


@dataclass(frozen=True)
class CorruptedImages:
    """All parts, ordered by corruption and severity.

    Attributes:
        name: what it is called in messages.
        parts: at least one.
    """

    name: str
    parts: list[CorruptedPart]
