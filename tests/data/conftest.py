"""Small data sets on disk."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image


@pytest.fixture
def put_image() -> Callable[..., np.ndarray]:
    """Writes an image of random pixels, of the shape `(height, width, ...)`, and returns it."""

    def put(path: Path, shape: tuple[int, ...] = (8, 8, 3), seed: int = 0, **options: object) -> np.ndarray:
        pixels = np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(path, **options)
        return pixels

    return put


@pytest.fixture
def class_folder(tmp_path: Path, put_image: Callable[..., np.ndarray]) -> Path:
    """Two classes with three images each."""
    root = tmp_path / "pets"
    for number, name in enumerate(["cat/2.png", "cat/10.png", "cat/more/1.PNG", "dog/a.png", "dog/b.png", "dog/c.png"]):
        put_image(root / name, seed=number)
    return root


@pytest.fixture
def cifar_c(tmp_path: Path) -> Path:
    """CIFAR-10-C with two corruptions of four images in five severities."""
    root = tmp_path / "cifar-c"
    root.mkdir()
    for seed, name in enumerate(["fog", "contrast"]):
        pixels = np.random.default_rng(seed).integers(0, 256, (20, 8, 8, 3), dtype=np.uint8)
        np.save(root / f"{name}.npy", pixels)
    np.save(root / "labels.npy", np.tile(np.array([0, 2, 1, 2]), 5))
    return root


@pytest.fixture
def imagenet_c(tmp_path: Path, put_image: Callable[..., np.ndarray]) -> Path:
    """ImageNet-C with two corruptions in two severities, three images each."""
    root = tmp_path / "imagenet-c"
    for seed, part in enumerate(["fog/1", "fog/3", "blur/1", "blur/3"]):
        for image, name in enumerate(["n01/a.png", "n02/b.png", "n02/c.png"]):
            put_image(root / part / name, seed=10 * seed + image)
    return root
