"""Training: how an encoder is trained on pairs of a process."""

from dataclasses import dataclass

from haptera.errors import HapteraError


@dataclass(frozen=True)
class Training:
    """How an encoder is trained.

    Attributes:
        steps: of training.
        batch_size: pairs, and as many negatives, in a step.
        learning_rate: of Adam, at first; it falls to 0.
        supervised: teach another encoder the latents as well, for comparison.
        start: where radius or side begins; by default near the process's.
        fixed: radius or side stay where they begin, instead of being learnt.
        device: of torch, cpu or cuda.
    """

    steps: int = 1000
    batch_size: int = 512
    learning_rate: float = 3e-3
    supervised: bool = False
    start: float | None = None
    fixed: bool = False
    device: str = "cpu"

    def __post_init__(self) -> None:
        for name in ("steps", "batch_size", "learning_rate", "start"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise HapteraError(f"{name} is {value}; more than 0 was expected")
