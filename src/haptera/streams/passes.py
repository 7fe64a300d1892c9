"""One pass through one data set, as it is (`Clean`) or under one shift (`Shifted`)."""

from dataclasses import dataclass, field
from math import isnan

from haptera.batch import Batch, check_index
from haptera.shifts import Shift
from haptera.streams.base import Reader, read
from haptera.streams.class_order import ClassOrder


@dataclass(frozen=True)
class DataStream(Reader, ClassOrder):
    """One pass through a data set, as it is or under one shift."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_labels(self.data)

    @property
    def samples(self) -> int:
        """The number of samples."""
        return len(self.data)

    def __len__(self) -> int:
        return self.batches(len(self.data))

    @property
    def shift(self) -> Shift | None:
        """Return what changes the images, if anything does."""
        return None

    @property
    def context(self) -> dict[str, object]:
        """Return what is known about every sample."""
        shift = self.shift
        return {"shift": shift.name if shift else "clean", "severity": shift.severity if shift else 0.0}

    def __getitem__(self, index: int) -> Batch:
        check_index(index, self)
        size = len(self.data)
        places = self.order_samples(size, self.data.targets)[self.places(index, size)]
        return read(self.data, places, self.shift, self.data.rows[places], self.seed, self.context)


@dataclass(frozen=True)
class Clean(DataStream):
    """The data as it is.

    Args:
        data: what is read.
        called: what the column `shift` says of it; another word than clean for data that is not what the model was made
            for, such as the images of a new camera beside those of the old one: then it is a shift, without a severity.
    """

    called: str = field(default="clean", kw_only=True)
    name: str = field(default="clean", kw_only=True)

    @property
    def context(self) -> dict[str, object]:
        """Return what is known about every sample."""
        return super().context if self.called == "clean" else {"shift": self.called, "severity": float("nan")}


@dataclass(frozen=True)
class Shifted(DataStream):
    """The data under one shift."""

    by: Shift
    name: str = field(default="shifted", kw_only=True)

    @property
    def shift(self) -> Shift | None:
        """The shift given."""
        return self.by

    @property
    def label(self) -> str:
        """Return a name such as `contrast 4`."""
        return f"{self.by.name} {self.by.severity:g}"


@dataclass(frozen=True)
class Part(DataStream):
    """One corruption at one severity, or one domain."""

    kind: str
    severity: float

    @property
    def context(self) -> dict[str, object]:
        """Return the shift and severity that the folder names."""
        return {"shift": self.kind, "severity": self.severity}

    @property
    def label(self) -> str:
        """Return a name such as `contrast 4`, or of the domain."""
        return self.kind if isnan(self.severity) else f"{self.kind} {self.severity:g}"
