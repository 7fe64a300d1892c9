"""Diagnose unlabelled images of a new camera: has the data shifted, where, what is it like, what will it cost?

Run it as `python examples/diagnosis.py`. It trains a small network on digits and writes no files.
"""

import numpy as np
import torch

from haptera import diagnose
from haptera.data import ArrayData, digits
from haptera.models import ResNet
from haptera.models.training import fit
from haptera.shifts import GaussianNoise


def main() -> None:
    """Half of the test digits are the old camera's; the other half comes from a new one, which is noisy."""
    torch.manual_seed(0)
    net = ResNet(width=8, stem=2)
    fit(net, digits("train", size=16), epochs=6)
    test = digits("test", size=16)
    images, half = test.images(np.arange(len(test))), len(test) // 2
    old = ArrayData(images[:half], test.targets[:half], "old")
    new = ArrayData(GaussianNoise(3)(images[half:]), None, "new")  # no labels
    print(diagnose(net, new, old).summary())
    with torch.no_grad():
        right = net(new.images(np.arange(len(new)))).argmax(1).numpy() == test.targets[half:]
    print(f"{'in truth':<16} new {right.mean():.1%}, which nobody knew")


if __name__ == "__main__":
    main()
