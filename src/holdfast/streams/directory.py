"""Data that somebody else has corrupted already, read from disk as it is, a fresh adapter for each part."""

from dataclasses import dataclass, field

from holdfast.batch import Stream
from holdfast.data import CorruptedImages
from holdfast.errors import HoldfastError
from holdfast.streams.base import DataStream, Parted


@dataclass(frozen=True)
class _Part(DataStream):
    """One corruption at one severity."""

    kind: str
    severity: float

    @property
    def context(self) -> dict[str, object]:
        """As the folder says."""
        return {"shift": self.kind, "severity": self.severity}

    @property
    def label(self) -> str:
        """Such as `contrast 4`."""
        return f"{self.kind} {self.severity:g}"


@dataclass(frozen=True)
class Directory(Parted):
    """Every corruption and severity of a folder in the layout of ImageNet-C or CIFAR-10-C."""

    data: CorruptedImages
    name: str = field(default="directory", kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.data, CorruptedImages):
            raise HoldfastError(
                f"the stream {self.name!r} reads a folder corruption/severity/class/file, or one .npy per corruption "
                f"with labels.npy; {self.data.name} is neither"
            )

    def parts(self) -> list[Stream]:
        """One stream per corruption and severity."""
        return [_Part(part.data, part.shift, part.severity, **self.settings()) for part in self.data.parts]
