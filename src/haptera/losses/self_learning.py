"""Losses that need no labels: what a model's own predictions, or a teacher's, say about them.

Functions map logits `(batch, classes)` to a loss per sample `(batch,)`, or to one for the batch, with gradients.
Sources: thesis (3.5) for the family of entropy and pseudo-labels, (3.4) for the robust loss; others by their papers,
with the constants of chapter 4 where it has them. Test vector (2, 1, 0, −1): see `tests/losses`.
Cost: a few passes over the logits; the conjugate labels of polyloss by their closed form, O(classes).
"""

from math import log

import torch
from torch.nn import functional as F


def entropy(logits: torch.Tensor, student_temperature: float = 1.0, teacher_temperature: float = 1.0) -> torch.Tensor:
    """−Σ σ(f/τ_t) log σ(f/τ_s), the gradient through both factors.

    >>> entropy(torch.tensor([[0.0, 0.0]])).exp().item()
    2.0
    """
    return -(_soft(logits, teacher_temperature) * _log_soft(logits, student_temperature)).sum(1)


def soft_pseudo_labels(
    logits: torch.Tensor,
    teacher: torch.Tensor,
    student_temperature: float = 1.0,
    teacher_temperature: float = 1.0,
) -> torch.Tensor:
    """−Σ σ(f_t/τ_t) log σ(f_s/τ_s), no gradient through the teacher."""
    return -(_soft(teacher.detach(), teacher_temperature) * _log_soft(logits, student_temperature)).sum(1)


def symmetric_cross_entropy(logits: torch.Tensor, teacher: torch.Tensor, share: float = 0.5) -> torch.Tensor:
    """−(1−a) Σ q log p − a Σ p log q, p the student's probabilities, q the teacher's, without a gradient through q.

    The second term, of share `a`, tolerates a teacher that is wrong (Wang et al. 2019); RMT's public code has halves.
    """
    log_p, log_q = logits.log_softmax(1), teacher.detach().log_softmax(1)
    return -((1 - share) * log_q.exp() * log_p + share * log_p.exp() * log_q).sum(1)


def mutual_cross_entropy(logits: torch.Tensor, others: torch.Tensor) -> torch.Tensor:
    """−½ Σ σ(g) log σ(f) − ½ Σ σ(f) log σ(g), the gradient through both."""
    return -0.5 * (_soft(others, 1.0) * _log_soft(logits, 1.0) + _soft(logits, 1.0) * _log_soft(others, 1.0)).sum(1)


def hard_pseudo_labels(logits: torch.Tensor, teacher: torch.Tensor, student_temperature: float = 1.0) -> torch.Tensor:
    """Cross-entropy with the teacher's first class as the label."""
    return F.cross_entropy(logits / student_temperature, teacher.argmax(1), reduction="none")


def generalised_cross_entropy(logits: torch.Tensor, labels: torch.Tensor, q: float = 0.8) -> torch.Tensor:
    """(1 − p^q) / q for the probability p of the label; cross-entropy as q → 0, absolute error at q = 1."""
    log_p = -F.cross_entropy(logits, labels, reduction="none")
    return -torch.expm1(q * log_p) / q if q else -log_p


def soft_likelihood_ratio(logits: torch.Tensor) -> torch.Tensor:
    """−Σ p log(p / (1 − p) + 1e-5), p at most .99: its gradient does not vanish where the model is sure."""
    p = logits.softmax(1).clamp(max=0.99)
    return -(p * torch.log(p / (1 - p) + 1e-5)).sum(1)


def conjugate_poly_loss(logits: torch.Tensor, epsilon: float = 8.0) -> torch.Tensor:
    """Polyloss with its conjugate pseudo-labels: logsumexp z − Σ (y z − ε y (1 − p)), (I + ε diag p − ε p pᵀ) y = p."""
    p = logits.softmax(1)
    y = conjugate_labels(p, epsilon)
    return logits.logsumexp(1) - (y * logits - epsilon * y * (1 - p)).sum(1)


def conjugate_labels(p: torch.Tensor, epsilon: float) -> torch.Tensor:
    """y of (I + ε diag p − ε p pᵀ) y = p, by Sherman and Morrison: w = p / (1 + ε p), y = w / (1 − ε Σ p w)."""
    w = p / (1 + epsilon * p)
    return w / (1 - epsilon * (p * w).sum(1, keepdim=True))


def diversity(mean: torch.Tensor) -> torch.Tensor:
    """log C − H of a mean prediction `(classes,)`: 0 where it is uniform, log C where one class has it all."""
    return (mean * torch.log(mean * len(mean))).nansum()


def marginal_entropy(logits: torch.Tensor) -> torch.Tensor:
    """The entropy of the mean prediction over views `(views, classes)` of an image, a scalar."""
    mean = logits.log_softmax(1).logsumexp(0) - log(len(logits))
    return -(mean.exp() * mean).sum()


def information_maximisation(logits: torch.Tensor) -> torch.Tensor:
    """The mean entropy minus that of the mean prediction, a scalar: −log C where all is sure and spread, at most 0."""
    p = logits.softmax(1)
    return entropy(logits).mean() - torch.special.entr(p.mean(0)).sum()


def _soft(logits: torch.Tensor, temperature: float) -> torch.Tensor:
    return (logits / temperature).softmax(1)


def _log_soft(logits: torch.Tensor, temperature: float) -> torch.Tensor:
    return (logits / temperature).log_softmax(1)
