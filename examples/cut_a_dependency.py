"""Cut a dependency: train two thirds of the way, find the edge worth cutting, train on with and without the penalty.

Run it as `python examples/cut_a_dependency.py [FOLDER]`; `haptera dependencies cut` prints the same of its files."""

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

KNOWN, EARLY, EPOCHS = 80, 6, 9
FOLDER = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp(prefix="haptera-"))


def pairs(samples: int, seed: int, known: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """Pixels of two digits side by side and their class: of the 80 known classes, or of the 20 never shown."""
    pixels, digits = load_digits(return_X_y=True)
    left, right = np.random.default_rng(seed).integers(0, len(pixels), (2, samples))
    targets = 10 * digits[left] + digits[right]
    both, chosen = np.hstack([pixels[left], pixels[right]]) / 16, (targets < KNOWN) == known
    return torch.from_numpy(both[chosen]).float(), torch.from_numpy(targets[chosen])


def train(net: nn.Module, epochs: range, penalty: DependencyPenalty | None = None) -> None:
    (images, targets), optimiser = pairs(15_000, 0, known=True), torch.optim.Adam(net.parameters(), 1e-3)
    for epoch in epochs:
        for rows in torch.randperm(len(images), generator=torch.Generator().manual_seed(epoch)).split(128):
            logits = net(images[rows])
            loss = nn.functional.cross_entropy(logits, targets[rows]) + (penalty(logits) if penalty else 0)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()


def save(net: nn.Module, name: str, known: bool = True) -> Path:
    (images, targets), names = pairs(6_000, 1, known), [f"{place // 10}|{place % 10}" for place in range(KNOWN)]
    more = {"targets": targets.numpy()} if known else {}
    np.savez(FOLDER / name, logits=net(images).detach().numpy(), classes=names, **more)
    return FOLDER / name


if __name__ == "__main__":
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, KNOWN))
    train(net, range(EARLY))
    found, cut = haptera.dependencies(save(net, "early.npz")), copy.deepcopy(net)
    edge = found.pairs.iloc[0][["class", "on"]].astype(int).tolist()
    train(net, range(EARLY, EPOCHS))
    train(cut, range(EARLY, EPOCHS), DependencyPenalty([tuple(edge)], weight=0.2))
    unseen = save(net, "before-unseen.npz", known=False), save(cut, "after-unseen.npz", known=False)
    both = save(net, "before.npz"), save(cut, "after.npz")
    print(compare_cut(*both, pair=tuple(found.names[place] for place in edge), unseen=unseen).summary())
