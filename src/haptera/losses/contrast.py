"""Contrastive losses: features that belong together become alike, all others unlike.

Sources: Khosla et al. 2020 for several views of each sample, as RMT and SANTA use it; He et al. 2020 (MoCo) for one key
against a queue, with AdaContrast's choice of rivals (Chen et al. 2022).
Every function returns a loss per sample `(batch,)`, with gradients, and compares features by their cosine.
Cost: one product of all views with each other, or of the queries with the queue.
"""

import torch
from torch.nn import functional as F


def view_contrast(views: torch.Tensor, temperature: float = 0.1) -> torch.Tensor:
    """Cross-entropy of finding the other views of a sample among all views of the batch.

    Args:
        views: `(batch, views, features)`, at least two views of each sample.
        temperature: τ; the rivals of a view are all other views, with weights exp(cosine / τ).

    >>> view_contrast(torch.eye(2)[:, None].expand(2, 2, 2), temperature=1.0)
    tensor([0.5514, 0.5514])
    """
    n, m = views.shape[:2]
    flat = F.normalize(views.flatten(0, 1), dim=1)
    itself = torch.eye(n * m, dtype=torch.bool, device=views.device)
    log_p = (flat @ flat.T / temperature).masked_fill(itself, -torch.inf).log_softmax(1)
    sample = torch.arange(n, device=views.device).repeat_interleave(m)
    others = (sample[:, None] == sample) & ~itself
    return -log_p.masked_fill(~others, 0.0).sum(1).view(n, m).mean(1) / (m - 1)


def instance_contrast(
    queries: torch.Tensor, keys: torch.Tensor, queue: torch.Tensor, rivals: torch.Tensor, temperature: float = 0.07
) -> torch.Tensor:
    """Cross-entropy of finding the key of a query among its rivals in a queue; no gradient through keys and queue.

    Args:
        queries: `(batch, features)`.
        keys: `(batch, features)`, one for each query.
        queue: `(size, features)`; with an empty one the loss is 0.
        rivals: `(batch, size)`, whether an entry of the queue is a rival of a query.
        temperature: τ, weights are exp(cosine / τ).
    """
    queries, keys, queue = (F.normalize(values, dim=1) for values in (queries, keys.detach(), queue.detach()))
    own = (queries * keys).sum(1, keepdim=True)
    others = (queries @ queue.T).masked_fill(~rivals, -torch.inf)
    return -(torch.cat([own, others], 1) / temperature).log_softmax(1)[:, 0]
