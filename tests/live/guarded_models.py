"""Small models that guards are tested around, and adapters that go wrong in known ways."""

import torch
from torch import nn

from haptera.adapters import Adapter, NoAdaptation, Tent
from haptera.live.guard import Guard

CLASSES = 4


def small_net(seed: int = 0) -> nn.Module:
    """A network of one convolution that tells its classes by brightness."""
    torch.manual_seed(seed)
    body = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.AdaptiveAvgPool2d(1))
    return nn.Sequential(body, nn.Flatten(), nn.Linear(4, CLASSES)).eval()


def images(count: int, seed: int = 0, side: int = 8) -> torch.Tensor:
    """Random images in [0, 1]."""
    return torch.rand(count, 1, side, side, generator=torch.Generator().manual_seed(seed))


class Told(nn.Module):
    """Says the class that the first pixel tells, `CLASSES` of them; so accuracy and shares can be set."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(8.0))

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        classes = (inputs[:, 0, 0, 0] * CLASSES).long().clamp(0, CLASSES - 1)
        return self.scale * nn.functional.one_hot(classes, CLASSES).float()


class Collapsing(Adapter):
    """Says class 0 for a share of the images that grows with every batch since the last reset."""

    def __init__(self, model: nn.Module, pace: float = 0.05, **settings: object) -> None:
        super().__init__(model, **settings)
        self.pace = pace
        self.memory["steps"] = 0

    def step(self, inputs: torch.Tensor) -> torch.Tensor:
        self.memory["steps"] += 1
        return self.predict(inputs)

    def predict(self, inputs: torch.Tensor) -> torch.Tensor:
        outputs = super().predict(inputs).clone()
        lost = int(min(1.0, self.pace * max(0, self.memory["steps"] - 1)) * len(outputs))
        outputs[:lost] = torch.eye(CLASSES)[0] * 8
        return outputs


class Failing(NoAdaptation):
    """Raises at its third step."""

    def step(self, inputs: torch.Tensor) -> torch.Tensor:
        self.memory["steps"] = self.memory.get("steps", 0) + 1
        if self.memory["steps"] == 3:
            raise RuntimeError("the optimiser broke")
        return super().step(inputs)


class NotFinite(NoAdaptation):
    """Answers with NaN from its second step on."""

    def step(self, inputs: torch.Tensor) -> torch.Tensor:
        self.memory["steps"] = self.memory.get("steps", 0) + 1
        return super().step(inputs) * (float("nan") if self.memory["steps"] > 1 else 1.0)


__all__ = ["CLASSES", "Collapsing", "Failing", "NotFinite", "Tent", "Told", "images", "small_net"]


def even_images(count, seed=0):
    """Images whose first pixel tells classes in turn, so that `Told` says each as often."""
    batch = images(count, seed)
    batch[:, 0, 0, 0] = (torch.arange(count) % CLASSES + 0.5) / CLASSES
    return batch


def events(guard_or_rows):
    return [row["event"] for row in guard_or_rows if row["kind"] == "event"]


def listening(*args, **settings):
    """A guard, and the rows that it tells."""
    guard, rows = Guard(*args, **settings), []
    guard.listeners.append(rows.append)
    return guard, rows
