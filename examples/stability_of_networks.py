"""How three networks take smooth deformations, relative to noise of the same norm, before and after training.

Run it as `python examples/stability_of_networks.py`. It trains small networks on digits and writes no files.
"""

import numpy as np
import torch

from haptera import stability
from haptera.data import digits
from haptera.models import MLP, LeNet, ResNet
from haptera.models.training import fit
from haptera.shifts import Diffeo

NETWORKS = {
    "mlp": lambda: MLP(size=16, width=64),
    "lenet": lambda: LeNet(size=16, width=6),
    "resnet": lambda: ResNet(width=8, stem=2),
}


def main() -> None:
    """Train, then measure R at δ = 1 and c = 3, on the networks as they began and as they are."""
    torch.manual_seed(0)
    trained, fresh = ({name: make() for name, make in NETWORKS.items()} for _ in range(2))
    for net in trained.values():
        fit(net, digits("train", size=16), epochs=8)
    test = digits("test", size=16)
    found = stability(trained, test, initial={f"{name}, init": net for name, net in fresh.items()})
    errors = found.errors.set_index("model")["error"]
    for name in trained:
        start, end = (found.value("R", model=model) for model in (f"{name}, init", name))
        print(f"{name:<8} R {start:5.2f} before training, {end:6.2f} after; error {errors[name]:.1%}")

    # The same field for an image, its mask and its keypoints; the id and the seed decide which field it is.
    image, deform = test.images(np.array([0])), Diffeo(delta=2, cutoff=3)
    field = deform.fields([0], seed=0, height=16, width=16)
    mask, corner = (image[:, 0] > 0.5).long(), torch.tensor([[[4.0, 7.0]]])
    moved, where = field.move_masks(mask), field.move_keypoints(corner)[0, 0]
    print(f"ink     {int(mask.sum())} pixels, {int(moved.sum())} after the deformation")
    print(f"corner  (4.0, 7.0) is now at ({where[0]:.1f}, {where[1]:.1f}); the field folds: {bool(field.folded())}")
    print(f"the image moves alike: {torch.equal(deform(image, [0], 0), field.move(image).clamp(0, 1))}")


if __name__ == "__main__":
    main()
