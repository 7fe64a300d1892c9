"""T3A: keep the surest features of every class as its supports, and classify by the means of the supports.

Source: Iwasawa and Matsuo 2021. Every class begins with its row of the last layer's weights as a support. The features
of an image join the supports of the class that the model predicts; a class keeps the `supports` of lowest entropy. The
prototype of a class is the mean of its supports, each scaled to norm 1, and a logit is the product of the features with
a prototype; a batch is predicted when its features have joined.
The public code decides: a row of weights has an entropy as features have, and leaves when surer ones come; prototypes
are scaled to norm 1; there is no bias; the model normalises by the statistics of training.
Differs: a row is a support of its own class, as in the paper, where the public code asks the model for the class;
`supports=0` keeps all, where the public code then drops the least sure of every class.
Cost: a forward pass; a sort, and a copy, of the supports, classes x supports x features numbers at most.
"""

from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from haptera.adapters.base import Adapter
from haptera.adapters.head import classify, ends_with_its_head
from haptera.adapters.passes import check_logits, run
from haptera.adapters.prototypes import head_rows
from haptera.adapters.select import features, last_layer
from haptera.checks import check_whole_number
from haptera.errors import NotApplicable
from haptera.losses.self_learning import entropy

ENDS_OTHERWISE = "T3A puts another classifier in the place of a linear layer at the end of a model, and this has none"


class T3A(Adapter):
    """Test-time template adjustment: prototypes in the place of the last layer; no gradients.

    Args:
        model: one that ends with a linear layer.
        supports: how many a class keeps, or 0 for all; the paper chooses among 1, 5, 20, 50, 100 and all.
        settings: `window` and `frozen`, as every adapter has them.
    """

    def __init__(self, model: nn.Module, supports: int = 20, **settings: Any) -> None:
        check_whole_number("supports", supports, 0, what="a number of supports for each class, or 0 for all")
        super().__init__(model, **settings)
        self.supports = supports
        self._known = False
        layer = last_layer(self.model)
        if isinstance(layer, nn.modules.conv._ConvNd) and layer.weight[0, 0].numel() > 1:
            raise NotApplicable(f"{ENDS_OTHERWISE}; the last that is seen is {layer}")
        rows = head_rows(self.model)
        self.memory |= {
            "supports": rows,
            "labels": torch.arange(len(rows)),
            "entropies": entropy(classify(self.model, rows)),
        }

    @torch.no_grad()
    def step(self, inputs: torch.Tensor) -> torch.Tensor:
        """Let the features join the supports, then predict."""
        logits, seen = self._look(inputs)
        fine = torch.isfinite(seen).all(1) & torch.isfinite(logits).all(1)
        kept = self.memory
        labels = torch.cat([kept["labels"].to(seen.device), logits.argmax(1)[fine]])
        entropies = torch.cat([kept["entropies"].to(seen), entropy(logits.to(seen))[fine]])
        chosen = surest(labels, entropies, self.supports) if self.supports else torch.arange(len(labels))
        joined = chosen >= len(kept["labels"])
        self.record["kept"] = float(joined.sum()) / len(inputs)
        together = torch.cat([kept["supports"].to(seen), seen[fine]])
        self.memory |= {"supports": together[chosen], "labels": labels[chosen], "entropies": entropies[chosen]}
        return self._classify(seen, logits)

    @torch.no_grad()
    def predict(self, inputs: torch.Tensor) -> torch.Tensor:
        """Predict with the supports so far."""
        logits, seen = self._look(inputs)
        return self._classify(seen, logits)

    def _look(self, inputs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Logits `(batch, classes)` and features `(batch, d)`."""
        with features(self.model) as seen:
            logits = check_logits(run(self.model, inputs), type(self).__name__)
        if not self._known and len(inputs):
            if not ends_with_its_head(self.model, seen[-1], logits):
                raise NotApplicable(f"{ENDS_OTHERWISE}; the logits are not what {last_layer(self.model)} gives")
            self._known = True
        return logits, seen[-1].float()

    def _classify(self, seen: torch.Tensor, logits: torch.Tensor) -> torch.Tensor:
        """Products of features and prototypes `(batch, classes)`."""
        supports, labels = self.memory["supports"].to(seen), self.memory["labels"].to(seen.device)
        sums = seen.new_zeros(logits.shape[1], seen.shape[1]).index_add_(0, labels, F.normalize(supports, dim=1))
        return (seen @ F.normalize(sums, dim=1).T).to(logits)


def surest(labels: torch.Tensor, entropies: torch.Tensor, most: int) -> torch.Tensor:
    """Positions of the lowest entropies of each label, at most so many of a label; of equal ones, the first.

    >>> surest(torch.tensor([0, 1, 0, 0]), torch.tensor([0.3, 0.9, 0.1, 0.2]), 2)
    tensor([2, 3, 1])
    """
    order = entropies.argsort(stable=True)
    order = order[labels[order].argsort(stable=True)]
    counts = torch.bincount(labels)
    ranks = torch.arange(len(order), device=order.device) - (counts.cumsum(0) - counts)[labels[order]]
    return order[ranks < most]
