"""Awkward networks: small ones of the kinds that other people bring, for laws about adapters that must hold on each."""

import copy
import threading
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

SIZE, CLASSES = 16, 10
"""Height and width of the images, and what they are classified into, as for the other example networks."""

Case = tuple[nn.Module, list[torch.Tensor]]


def plain() -> nn.Sequential:
    """Convolution, BatchNorm, Linear, in evaluation mode, its statistics away from the defaults."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        net = nn.Sequential(
            nn.Conv2d(1, 6, 3, stride=2),
            nn.BatchNorm2d(6),
            nn.ReLU(),
            nn.Conv2d(6, 6, 3, padding=1),
            nn.BatchNorm2d(6),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(2),
            nn.Flatten(),
            nn.Linear(24, CLASSES),
        )
        for inputs in images():
            net(inputs)
    return net.eval()


def images(batches: int = 2) -> list[torch.Tensor]:
    """Batches of small grey images."""
    generator = torch.Generator().manual_seed(1)
    return [torch.rand(6, 1, SIZE, SIZE, generator=generator) for _ in range(batches)]


class Counting(nn.Module):
    """Counts its calls in a buffer, and answers otherwise after each."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner
        self.calls: torch.Tensor
        self.register_buffer("calls", torch.tensor(0))

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Return logits, a little larger each time."""
        self.calls += 1
        return self.inner(inputs) * (1 + self.calls / 10)


class TakesBytes(nn.Module):
    """Takes images as whole numbers from 0 to 255."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Return logits."""
        return self.inner(inputs.float() / 255)


class InPlace(TakesBytes):
    """Writes into its inputs."""

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Return logits."""
        return self.inner(inputs.mul_(2).sub_(1))


class Tied(TakesBytes):
    """Uses one weight in two layers."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__(inner)
        self.first, self.second = nn.Linear(CLASSES, CLASSES), nn.Linear(CLASSES, CLASSES)
        with torch.no_grad():
            self.first.weight.copy_(torch.eye(CLASSES) * 1.5)
            self.first.bias.zero_()
            self.second.bias.zero_()
        self.second.weight = self.first.weight

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Return logits."""
        return self.second(self.first(self.inner(inputs)))


class Uncopyable(TakesBytes):
    """Holds a lock, and a tensor that was computed from its weights, neither of which Python can copy."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__(inner)
        self.lock = threading.Lock()
        self.computed = next(inner.parameters()) * 2

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Return logits."""
        with self.lock:
            return self.inner(inputs)


class Recurrent(nn.Module):
    """Takes the rows of an image one after the other."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.norm, self.last = nn.LSTM(SIZE, 8, batch_first=True), nn.LayerNorm(8), nn.Linear(8, CLASSES)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Return logits."""
        return self.last(self.norm(self.layer(inputs[:, 0])[0][:, -1]))


class ModelOutput(OrderedDict[str, Any]):
    """A dictionary whose values are attributes as well, as in `transformers`."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


class Returns(nn.Module):
    """Wraps its logits in something."""

    def __init__(self, inner: nn.Module, wrap: Callable[[torch.Tensor], Any]) -> None:
        super().__init__()
        self.inner, self.wrap = inner, wrap

    def forward(self, inputs: torch.Tensor) -> Any:
        """Return what `wrap` makes of the logits."""
        return self.wrap(self.inner(inputs))


def _model_output(logits: torch.Tensor) -> ModelOutput:
    return ModelOutput(loss=None, logits=logits)


def _dictionary(logits: torch.Tensor) -> dict[str, torch.Tensor]:
    return {"features": logits * 2, "logits": logits}


def _pair(logits: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return logits, logits * 2


def _built_in_inference_mode() -> nn.Module:
    with torch.inference_mode():
        return copy.deepcopy(plain())


def _some_frozen() -> nn.Module:
    net = plain()
    for parameter in list(net.parameters())[:4]:
        parameter.requires_grad_(False)
    return net


def _parametrised() -> nn.Module:
    *body, head = plain()
    return nn.Sequential(*body, nn.utils.parametrizations.weight_norm(head)).eval()


def _recurrent() -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return Recurrent().eval()


def _with_dropout() -> nn.Module:
    *body, head = plain()
    return nn.Sequential(*body, nn.Dropout(0.5), head).train()


def _regression() -> nn.Module:
    return nn.Sequential(*list(plain())[:-1], nn.Linear(24, 1)).eval()


def _dense() -> nn.Module:
    return nn.Sequential(*list(plain())[:6], nn.Conv2d(6, 4, 1)).eval()


def _scripted() -> nn.Module:
    with as_it_is():
        return torch.jit.script(plain())


def _traced() -> nn.Module:
    with as_it_is():
        return torch.jit.trace(plain(), images()[0])


def _quantised() -> nn.Module:
    with as_it_is():
        return torch.ao.quantization.quantize_dynamic(plain(), {nn.Linear}, torch.qint8)


@contextmanager
def as_it_is() -> Iterator[None]:
    """Silence torch's advice to use something newer: people have such networks."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.filterwarnings("ignore", "torch.quantize_per_tensor|TypedStorage", UserWarning)
        yield


def _lazy() -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.LazyLinear(CLASSES))


def _bytes() -> list[torch.Tensor]:
    return [(batch * 255).to(torch.uint8) for batch in images()]


def awkward_networks() -> dict[str, Callable[[], Case]]:
    """Name -> function that makes a network from images to logits, and batches for it."""
    return {
        "counter in a buffer": lambda: (Counting(plain()), images()),
        "built in inference mode": lambda: (_built_in_inference_mode(), images()),
        "takes bytes": lambda: (TakesBytes(plain()), _bytes()),
        "bytes where floats belong": lambda: (plain(), _bytes()),
        "half precision": lambda: (plain().half(), [batch.half() for batch in images()]),
        "bfloat16": lambda: (plain().bfloat16(), [batch.bfloat16() for batch in images()]),
        "half precision, single inputs": lambda: (plain().half(), images()),
        "double precision": lambda: (plain().double(), [batch.double() for batch in images()]),
        "scripted": lambda: (_scripted(), images()),
        "traced": lambda: (_traced(), images()),
        "data parallel": lambda: (nn.DataParallel(plain()), images()),
        "inputs that need a gradient": lambda: (plain(), [batch.requires_grad_() for batch in images()]),
        "some parameters frozen": lambda: (_some_frozen(), images()),
        "tied weights": lambda: (Tied(plain()).eval(), images()),
        "cannot be copied": lambda: (Uncopyable(plain()).eval(), images()),
        "parametrised weights": lambda: (_parametrised(), images()),
        "recurrent": lambda: (_recurrent(), images()),
        "dropout, in training mode": lambda: (_with_dropout(), images()),
        "writes into its inputs": lambda: (InPlace(plain()), images()),
        "returns a ModelOutput": lambda: (Returns(plain(), _model_output), images()),
        "returns a dictionary": lambda: (Returns(plain(), _dictionary), images()),
        "quantised": lambda: (_quantised(), images()),
        "not initialised yet": lambda: (_lazy(), images()),
    }


def networks_without_logits() -> dict[str, Callable[[], Case]]:
    """The same for networks that return something else; an adapter that looks at predictions must refuse them."""
    return {
        "returns a tuple": lambda: (Returns(plain(), _pair), images()),
        "returns one number": lambda: (_regression(), images()),
        "returns a map of classes": lambda: (_dense(), images()),
    }
