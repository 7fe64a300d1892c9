"""Skip: a backward pass through some samples of a batch only, exact for any network, cheap where layers do not mix.

Methods such as ETA learn from a share of a batch, and the gradient of the others is zero. torch's backward pass
computes with these zeros. Here the gradient is a tensor that looks like the whole one and holds the rows of the samples
that are kept: operations of the backward pass that treat samples apart, as those of LayerNorm, GroupNorm, linear
layers, convolutions and attention do, run on these rows and on those of what the forward pass saved. Any other
operation gets the whole tensor with its zeros: what is not known here is slower, not wrong. Networks with functions
that are not torch's, or with BatchNorm on the statistics of the batch, are left to torch.
Cost: with a share k kept, k of the backward pass, and a copy of k of what the forward pass saved; a second pass of the
kept samples alone, the other way to do this, costs k of a forward pass instead (`benchmarks/adapters.py`).
"""

import re
from functools import partial
from typing import Any

import torch

from haptera.adapters import row_rules  # noqa: F401 - the rules of Rows
from haptera.adapters.rows import Rows

BUILT_IN = re.compile(r"\w+Backward\d+|torch::autograd::AccumulateGrad")


def keep(logits: torch.Tensor, kept: torch.Tensor) -> torch.Tensor:
    """Return the logits of some samples; where layers treat samples apart, the backward pass goes through these alone.

    Args:
        logits: `(batch, classes)`, with a gradient.
        kept: `(batch,)`, true for some.
    """
    index = kept.nonzero().squeeze(1)
    if len(index) < len(logits) and logits.grad_fn is not None and _treats_apart(logits.grad_fn):
        logits = logits.view_as(logits)
        logits.register_hook(partial(Rows.of, index=index))
    return logits[index]


def _treats_apart(last: Any) -> bool:
    """Say whether a graph is of torch's own functions, which can be told apart, without statistics of the batch."""
    seen, waiting = {last}, [last]
    while waiting:
        node = waiting.pop()
        if not BUILT_IN.fullmatch(node.name()) or getattr(node, "_saved_training", False):
            return False
        new = {after for after, _ in node.next_functions if after is not None} - seen
        seen |= new
        waiting += new
    return True
