"""An adapter of one's own: it keeps a running mean of the logits and takes it away. Check the laws, then compare.

Run it as `python examples/my_own_adapter.py [FOLDER]`, or `haptera check examples/my_own_adapter.py:CentredLogits`.
"""

import sys
import tempfile
from pathlib import Path

import torch
from torch import nn

from haptera import Study
from haptera.adapters import Adapter, NoAdaptation, check_logits
from haptera.data import digits
from haptera.models import ResNet
from haptera.models.training import fit
from haptera.shifts import Contrast, GaussianNoise
from haptera.streams import Clean, Corruptions
from haptera.testing import check_adapter


class CentredLogits(Adapter):
    """A shifted model often favours a few classes; centred logits favour none. Assumes that classes are balanced."""

    def __init__(self, model: nn.Module, momentum: float = 0.2, *, frozen: bool = False) -> None:
        super().__init__(model, frozen=frozen)
        self.momentum = momentum
        self.memory["centre"] = None  # reset and state_dict know what is in memory

    def step(self, inputs: torch.Tensor) -> torch.Tensor:
        """Move the centre towards the mean of this batch, then predict."""
        logits = check_logits(super().predict(inputs), "CentredLogits")  # or one sentence for a model without classes
        centre = torch.zeros_like(logits[0]) if self.memory["centre"] is None else self.memory["centre"]
        self.memory["centre"] = centre = centre.lerp(logits.mean(0), self.momentum)
        self.record["offset"] = float(centre.std())
        return logits - centre

    def predict(self, inputs: torch.Tensor) -> torch.Tensor:
        """Predict with the centre as it is."""
        centre, logits = self.memory["centre"], super().predict(inputs)
        return logits if centre is None else logits - centre


def main(folder: Path) -> None:
    """Check the laws, then compare with the unadapted model."""
    broken = {law: why for law, why in check_adapter(CentredLogits).items() if why}
    print(f"laws broken: {broken or 'none'}")
    torch.manual_seed(0)
    net = ResNet(width=8, stem=2)
    fit(net, digits("train", size=16), epochs=8)
    data = digits("test", size=16)
    streams = [Clean(data), Corruptions(data, (GaussianNoise, Contrast), (2, 4))]
    table = Study({"net": net}, streams, {"none": NoAdaptation, "centred": CentredLogits}, out=folder).run()
    accuracy = table[table["measure"] == "accuracy"]
    print(accuracy.pivot_table("value", ["shift", "severity"], "adapter").round(3).to_string())


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp(prefix="haptera-")))
