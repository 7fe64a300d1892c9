"""Data that somebody else has corrupted already, read from disk as it is, a fresh adapter for each part."""

from dataclasses import dataclass, field

from holdfast.batch import Batch, Stream, check_batch_size
from holdfast.data import Classes, CorruptedImages
from holdfast.errors import HoldfastError
from holdfast.streams.base import DataStream


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
class Directory(Stream):
    """Every corruption and severity of a folder in the layout of ImageNet-C or CIFAR-10-C."""

    data: CorruptedImages
    batch_size: int = field(default=64, kw_only=True)
    seed: int = field(default=0, kw_only=True)
    shuffle: bool = field(default=True, kw_only=True)
    name: str = field(default="directory", kw_only=True)

    def __post_init__(self) -> None:
        check_batch_size(self.batch_size)
        if not isinstance(self.data, CorruptedImages):
            raise HoldfastError(
                f"the stream {self.name!r} reads a folder corruption/severity/class/file, or one .npy per corruption "
                f"with labels.npy; {self.data.name} is neither"
            )

    def parts(self) -> list[Stream]:
        """One stream per corruption and severity."""
        settings = {"batch_size": self.batch_size, "seed": self.seed, "shuffle": self.shuffle, "name": self.name}
        return [_Part(part.data, part.shift, part.severity, **settings) for part in self.data.parts]  # type: ignore[arg-type]

    @property
    def samples(self) -> int:
        """The number of samples in all parts."""
        return sum(len(part.data) for part in self.data.parts)

    @property
    def classes(self) -> Classes | None:
        """How targets relate to the model's classes."""
        return self.data.parts[0].data.classes

    def __len__(self) -> int:
        return sum(len(part) for part in self.parts())

    def __getitem__(self, index: int) -> Batch:
        position = index
        for part in self.parts():
            if 0 <= position < len(part):
                return part[position]
            position -= len(part)
        raise IndexError(f"batch {index} of a stream with {len(self)} batches")
