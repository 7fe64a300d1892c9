"""Cut a dependency: train two thirds of the way, find the edge worth cutting, train on with and without the penalty.

Run it as `python examples/cut_a_dependency.py [FOLDER]`. Two of scikit-learn's digits side by side make 100 classes, 20
of which are never shown; a small network learns the others in some seconds. It leaves `before.npz` and `after.npz`, and
logits on unseen classes beside them; `haptera dependencies cut before.npz after.npz CLASS CLASS` prints the same table.
"""

import copy
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn

import haptera
from haptera.analyses.dependencies import compare_cut
from haptera.losses import DependencyPenalty

KNOWN, EPOCHS = 80, 9


def pairs(samples: int, seed: int, known: bool) -> tuple[torch.Tensor, np.ndarray]:
    """Pixels of two digits and their class, of the known classes or of the others."""
    pixels, digits = load_digits(return_X_y=True)
    left, right = np.random.default_rng(seed).integers(0, len(pixels), (2, samples))
    targets = 10 * digits[left] + digits[right]
    chosen = (targets < KNOWN) == known
    both = np.hstack([pixels[left], pixels[right]])[chosen] / 16
    return torch.from_numpy(both.astype(np.float32)), targets[chosen]


def train(net: nn.Module, epochs: range, penalty: DependencyPenalty | None = None) -> None:
    """Adam, with the same batches in both cases."""
    images, targets = pairs(15_000, 0, known=True)
    optimiser = torch.optim.Adam(net.parameters(), 1e-3)
    for epoch in epochs:
        order = torch.randperm(len(images), generator=torch.Generator().manual_seed(epoch))
        for rows in order.split(128):
            logits = net(images[rows])
            loss = nn.functional.cross_entropy(logits, torch.from_numpy(targets)[rows])
            if penalty is not None:
                loss = loss + penalty(logits)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()


@torch.no_grad()
def save(net: nn.Module, path: Path, known: bool = True) -> Path:
    """Logits on other images; unseen classes have no targets among the columns."""
    images, targets = pairs(6_000, 1, known)
    names = [f"{place // 10}|{place % 10}" for place in range(KNOWN)]
    np.savez(path, logits=net(images).numpy(), classes=names, **({"targets": targets} if known else {}))
    return path


def main(folder: Path) -> None:
    """Train, cut, compare."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, KNOWN))
    train(net, range(2 * EPOCHS // 3))
    found = haptera.dependencies(save(net, folder / "early.npz"))
    best = found.pairs.iloc[0]
    pair = int(best["class"]), int(best["on"])
    print(f"worth cutting: {found.names[pair[0]]} on {found.names[pair[1]]}, strength {best['strength']:.2f}")
    networks = {"before": (copy.deepcopy(net), None), "after": (net, DependencyPenalty([pair], weight=0.2))}
    for name, (network, penalty) in networks.items():
        train(network, range(2 * EPOCHS // 3, EPOCHS), penalty)
        save(network, folder / f"{name}.npz")
        save(network, folder / f"{name}-unseen.npz", known=False)
    unseen = folder / "before-unseen.npz", folder / "after-unseen.npz"
    names = found.names[pair[0]], found.names[pair[1]]
    print(compare_cut(folder / "before.npz", folder / "after.npz", pair=names, unseen=unseen).summary())


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp(prefix="haptera-")))
