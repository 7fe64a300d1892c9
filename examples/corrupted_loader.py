"""Corruptions in a data loader of one's own: a shift is a function of images, their numbers and a seed, nothing else.

Run it as `python examples/corrupted_loader.py`. An image is the same from any worker, in any order and batch.
"""

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from haptera.data import digits
from haptera.shifts import Compose, GaussianNoise, MotionBlur, Shift

SHIFT = Compose([MotionBlur(2), GaussianNoise(1)])


class Corrupted(Dataset):
    """Any images in [0, 1] under a shift; the number of a sample is what its randomness depends on."""

    def __init__(self, images: torch.Tensor, targets: torch.Tensor, shift: Shift, seed: int = 0) -> None:
        self.images, self.targets, self.shift, self.seed = images, targets, shift, seed

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor, int]:
        image = self.shift(self.images[index, None], ids=[index], seed=self.seed)[0]
        return image, self.targets[index], index


def read(loader: DataLoader) -> torch.Tensor:
    """All images of a loader, in the order of their numbers."""
    batches = list(loader)
    numbers = torch.cat([batch[2] for batch in batches])
    return torch.cat([batch[0] for batch in batches])[numbers.argsort()]


def main() -> None:
    """The same images from two workers in random order, from one worker in order, and in one call."""
    data = digits("test", size=16)
    images, targets = data.images(np.arange(len(data))), torch.from_numpy(data.targets)
    corrupted = Corrupted(images, targets, SHIFT)
    two = read(DataLoader(corrupted, batch_size=64, shuffle=True, num_workers=2))
    one = read(DataLoader(corrupted, batch_size=10))
    print(f"{len(two)} images under {SHIFT.name}")
    print(f"two workers, shuffled, equal one worker in order: {torch.equal(two, one)}")
    print(f"image by image equals all in one call: {torch.equal(one, SHIFT(images))}")


if __name__ == "__main__":
    main()
