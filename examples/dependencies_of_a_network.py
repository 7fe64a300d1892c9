"""Dependencies of a network: which classes it derives from others, what replacing them costs, which could go.

Run it as `python examples/dependencies_of_a_network.py [FOLDER]`. Two of scikit-learn's digits side by side make 100
classes; a small network learns them in some seconds. `haptera dependencies pairs.npz` does the same on its file.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn

import haptera
from haptera.analyses.dependencies.replacement import removable


def pairs(samples: int, seed: int) -> tuple[torch.Tensor, np.ndarray]:
    """Pixels of two digits, and their class from 0 to 99."""
    pixels, digits = load_digits(return_X_y=True)
    left, right = np.random.default_rng(seed).integers(0, len(pixels), (2, samples))
    both = np.hstack([pixels[left], pixels[right]]) / 16
    return torch.from_numpy(both.astype(np.float32)), 10 * digits[left] + digits[right]


def main(folder: Path) -> None:
    """Train, save the logits, analyse the file, write the report."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 100))
    images, targets = pairs(20_000, seed=0)
    optimiser = torch.optim.Adam(net.parameters(), 2e-3)
    for _ in range(6):
        for rows in torch.randperm(len(images)).split(128):
            loss = nn.functional.cross_entropy(net(images[rows]), torch.from_numpy(targets)[rows])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()

    images, targets = pairs(5_000, seed=1)
    logits = net(images).detach().numpy()
    np.savez(folder / "pairs.npz", logits=logits, targets=targets, classes=[f"{k // 10}|{k % 10}" for k in range(100)])

    found = haptera.dependencies(folder / "pairs.npz", per_class=4)
    print(f"rank {found.redundancy.rank} of 100, accuracy {found.replacement['own_accuracy'][0]:.3f}")
    for place in found.dependencies.relative_error.argsort()[:3]:
        print(f"  {found.combination(place)}   accuracy with it {found.replacement['accuracy'][place]:.3f}")
    gone = removable(logits, targets, haptera.dependencies(folder / "pairs.npz").lasso, drop=0.01)
    print(f"{len(gone)} classes can go together for one point of accuracy")
    print(f"report: {found.save(folder / 'dependencies')['report']}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp(prefix="haptera-")))
