"""Which layers are safe with channels last in memory: layers x shapes, each in a process of its own.

    python experiments/layouts.py [LAYER ...]

Every process runs one layer forward and backward many times with channels last, with and without a gradient of its
input, under an allocator that checks what is freed, and compares the gradients with those in contiguous memory. It does
so on the CPU as it is and as one with AVX2 only (`ONEDNN_MAX_CPU_ISA`). What crashes or differs is printed, and is what
`haptera.adapters.passes` must not choose; `tests/adapters/test_layout.py` runs a part of it.
"""

import os
import subprocess
import sys
from collections.abc import Iterator

import torch
from torch import nn

from haptera.adapters.passes import arrange

OLDER = {"ONEDNN_MAX_CPU_ISA": "AVX2", "ATEN_CPU_CAPABILITY": "avx2"}
CHECKED = {"MALLOC_CHECK_": "3", "MALLOC_PERTURB_": "85"}


def layers() -> dict[str, tuple[int, nn.Module]]:
    """Name -> input channels and layer."""
    made: dict[str, tuple[int, nn.Module]] = {}

    def add(kind: type[nn.Conv2d | nn.ConvTranspose2d], inputs: int, outputs: int, size: int, **settings: int) -> None:
        words = ", ".join(f"{name} {value}" for name, value in settings.items())
        what = "conv" if kind is nn.Conv2d else "transposed"
        made[f"{what} {inputs} to {outputs}, {size}x{size}, {words}"] = (
            inputs,
            kind(inputs, outputs, size, bias=False, **settings),
        )

    for channels in (1, 2, 3, 4, 5, 6, 7, 8, 9, 12):
        add(nn.Conv2d, channels, 8, 1, stride=2)
    for inputs, outputs in ((4, 3), (4, 16), (16, 4), (12, 5)):
        add(nn.Conv2d, inputs, outputs, 1, stride=2)
    for channels, groups in ((8, 2), (8, 8), (16, 2), (32, 4), (32, 8)):
        add(nn.Conv2d, channels, channels, 1, stride=2, groups=groups)
    add(nn.Conv2d, 4, 8, 1, stride=3)
    add(nn.Conv2d, 4, 8, 1, stride=1)
    add(nn.Conv2d, 4, 8, 1, stride=2, padding=1)
    for channels in (1, 2, 3, 4, 6):
        add(nn.Conv2d, channels, 8, 3, stride=2, padding=1)
        add(nn.Conv2d, channels, 8, 3, stride=1, padding=2, dilation=2)
        add(nn.Conv2d, channels, channels, 3, stride=2, padding=1, groups=channels)
    for size, stride in ((2, 2), (2, 3), (4, 4), (5, 2), (7, 2), (5, 1)):
        add(nn.Conv2d, 3, 8, size, stride=stride)
        add(nn.Conv2d, 1, 8, size, stride=stride)
    for inputs, outputs in ((2, 8), (4, 8), (8, 4), (8, 8), (16, 3)):
        add(nn.ConvTranspose2d, inputs, outputs, 1, stride=2)
        add(nn.ConvTranspose2d, inputs, outputs, 2, stride=2)
        add(nn.ConvTranspose2d, inputs, outputs, 3, stride=1)
        add(nn.ConvTranspose2d, inputs, outputs, 4, stride=2, padding=1)
    add(nn.ConvTranspose2d, 4, 4, 2, stride=2, groups=4)
    for channels in (3, 8):
        made |= {
            f"batch norm {channels}": (channels, nn.BatchNorm2d(channels)),
            f"batch norm {channels}, evaluation": (channels, nn.BatchNorm2d(channels).eval()),
            f"group norm {channels}": (channels, nn.GroupNorm(1, channels)),
            f"instance norm {channels}": (channels, nn.InstanceNorm2d(channels, affine=True)),
            f"prelu {channels}": (channels, nn.PReLU(channels)),
            f"pools {channels}": (
                channels,
                nn.Sequential(nn.MaxPool2d(3, 2, 1), nn.AvgPool2d(2), nn.AdaptiveAvgPool2d(3)),
            ),
            f"upsampling {channels}": (channels, nn.Upsample(scale_factor=2, mode="bilinear")),
            f"shuffled pixels {channels}": (channels, nn.Sequential(nn.Conv2d(channels, 8, 3), nn.PixelShuffle(2))),
        }
    return made


def try_layer(name: str, passes: int) -> None:
    """Run a layer in this process; an error if a gradient differs between layouts, a crash if torch crashes."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    channels, layer = layers()[name]
    for size in ((24, 20), (17, 13)):
        for needed in (True, False):
            images = torch.rand(4, channels, *size)
            last = arrange(images, True).requires_grad_(needed)
            for _ in range(passes):
                found = _gradients(layer, last)
            for one, two in zip(found, _gradients(layer, images.requires_grad_(needed)), strict=True):
                away = float((one - two).abs().max() / (1 + two.abs().max()))
                if away > 1e-4:
                    raise SystemExit(f"gradients differ by {away:.1e}")


def _gradients(layer: nn.Module, inputs: torch.Tensor) -> list[torch.Tensor]:
    layer.zero_grad()
    inputs.grad = None
    out = layer(inputs)
    if out.requires_grad:
        (out * torch.linspace(-1, 1, out.numel()).view(out.shape)).sum().backward()
    return [tensor.grad.clone() for tensor in (inputs, *layer.parameters()) if tensor.grad is not None]


def why_unsafe(name: str, environment: dict[str, str], passes: int = 100) -> str:
    """How a process of its own ended that tried a layer; empty if it ended well."""
    done = subprocess.run(
        [sys.executable, __file__, "--child", name, str(passes)],
        env=os.environ | CHECKED | environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    if not done.returncode:
        return ""
    reason = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
    return " ".join([f"signal {-done.returncode}" if done.returncode < 0 else f"exit {done.returncode}", *reason])


def unsafe(names: list[str]) -> Iterator[tuple[str, str, str]]:
    """CPU, layer and reason, for each layer that did not end well."""
    for name in names:
        for cpu, environment in (("this CPU", {}), ("AVX2 only", OLDER)):
            if reason := why_unsafe(name, environment):
                yield cpu, name, reason


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        try_layer(sys.argv[2], int(sys.argv[3]))
    else:
        for line in unsafe(sys.argv[1:] or list(layers())):
            print(*line, sep="; ", flush=True)
