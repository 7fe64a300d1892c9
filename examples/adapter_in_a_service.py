"""An adapter inside a service: wrap the model once, call it for every batch, log its record, reset when told to.

Run it as `python examples/adapter_in_a_service.py`. It writes no files.
"""

import logging

import torch

from haptera.adapters import BatchNorm
from haptera.data import digits
from haptera.models import ResNet
from haptera.models.training import fit
from haptera.shifts import Contrast
from haptera.streams import Shifted

log = logging.getLogger("service")


class WatchedBatchNorm(BatchNorm):
    """BatchNorm that also reports how far the statistics moved, in units of the training spread."""

    def step(self, inputs: torch.Tensor) -> torch.Tensor:
        """Predict as BatchNorm does, then write the record."""
        logits = super().step(inputs)
        away = [((layer.mean - layer.source_mean).abs() / layer.source_var.sqrt()).mean() for layer in self.layers]
        self.record["moved"] = float(torch.stack(away).mean())
        return logits


def main() -> None:
    """Serve a few batches of a new camera, then a batch of black frames."""
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    torch.manual_seed(0)
    net = ResNet(width=8, stem=2)
    fit(net, digits("train", size=16), epochs=8)

    model = WatchedBatchNorm(net)  # in place of net; net itself is never changed
    new_camera = Shifted(digits("test", size=16), Contrast(2))
    right = right_without = seen = 0
    for batch in new_camera:
        logits = model(batch.inputs)
        log.info("batch of %d: %s", len(batch), {key: round(value, 3) for key, value in model.record.items()})
        with torch.no_grad():
            right_without += int((net(batch.inputs).argmax(1) == batch.targets).sum())
        right += int((logits.argmax(1) == batch.targets).sum())
        seen += len(batch)
    print(f"adapted {right} of {seen} right, unadapted {right_without} of {seen}")

    black = model(torch.zeros(8, 1, 16, 16))
    print(f"black frames: outputs are finite: {bool(torch.isfinite(black).all())}")
    model.reset()
    print("reset: the state is that before the first batch")


if __name__ == "__main__":
    main()
