"""A shift of one's own: dead pixels. Write `apply`, check the laws, use it like any other.

Run it as `python examples/my_own_shift.py [FOLDER]`, or `haptera check examples/my_own_shift.py:DeadPixels`.
"""

import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import torch

from haptera import Study
from haptera.data import digits
from haptera.models import ResNet
from haptera.models.training import fit
from haptera.shifts import SampleRandom, Shift
from haptera.streams import Corruptions
from haptera.testing import check_shift


@dataclass(frozen=True)
class DeadPixels(Shift):
    """Turns a share of the pixels black, other ones in every image; severity 5 is every fifth pixel."""

    name: ClassVar[str] = "dead_pixels"

    def apply(self, images: torch.Tensor, random: SampleRandom) -> torch.Tensor:
        """Keep a pixel where its random number is large enough; all channels die together."""
        alive = random.uniform((1, *images.shape[2:])) >= self.severity / 25
        return images * alive


def main(folder: Path) -> None:
    """Check the laws, then see how a network holds."""
    broken = {law: why for law, why in check_shift(DeadPixels).items() if why}
    print(f"laws broken: {broken or 'none'}")

    torch.manual_seed(0)
    net = ResNet(width=8, stem=2)
    fit(net, digits("train", size=16), epochs=8)
    stream = Corruptions(digits("test", size=16), shifts=(DeadPixels,), severities=(0, 1, 3, 5))
    table = Study({"net": net}, [stream], out=folder).run()
    for row in table[table["measure"] == "accuracy"].itertuples():
        print(f"{row.shift} {row.severity:g}: accuracy {row.value:.3f} ({row.low:.3f} to {row.high:.3f})")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp(prefix="haptera-")))
