"""Training that is enough for the small networks: AdamW, a one-cycle schedule, small random translations."""

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from haptera.data import Data


def fit(model: nn.Module, data: Data, *, epochs: int, seed: int = 0, lr: float = 3e-3, batch_size: int = 64) -> None:
    """Train in place, repeatably; reads and writes no global generator.

    Args:
        model: from images to logits; ends in evaluation mode.
        data: labelled images, held in memory while training.
        epochs: passes through the data.
        seed: of the order and of the translations.
        lr: the largest learning rate.
        batch_size: samples per step.
    """
    assert data.targets is not None, "training needs labels"
    images, targets = data.images(np.arange(len(data))), torch.from_numpy(data.targets)
    generator = torch.Generator().manual_seed(seed)
    optimiser = torch.optim.AdamW(model.parameters(), lr, weight_decay=1e-3)
    steps = -(-len(images) // batch_size) * epochs
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, lr, total_steps=max(steps, 2))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)  # for layers that draw, such as dropout
        model.train()
        for _ in range(epochs):
            for rows in torch.randperm(len(images), generator=generator).split(batch_size):
                if len(rows) < 2:  # BatchNorm has no variance there
                    continue
                loss = F.cross_entropy(model(_translate(images[rows], generator)), targets[rows])
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
                schedule.step()
    model.eval()


def _translate(images: torch.Tensor, generator: torch.Generator, share: float = 0.06) -> torch.Tensor:
    """Move a batch by up to a share of its side, the same way for all images, edges repeated."""
    most = max(1, round(images.shape[-1] * share))
    down, right = (int(torch.randint(0, 2 * most + 1, (), generator=generator)) for _ in range(2))
    padded = F.pad(images, (most, most, most, most), mode="replicate")
    return padded[..., down : down + images.shape[-2], right : right + images.shape[-1]]
