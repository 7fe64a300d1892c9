"""Models of RobustBench by name. They normalise by themselves; images of ImageNet are cut from 256 to 224 pixels."""

from typing import Any

from haptera.errors import HapteraError, first_line, unknown
from haptera.models.classifier import Classifier
from haptera.models.loaders.finding import import_extra
from haptera.models.preprocessing import Preprocessing

SIZES = {
    "cifar10": Preprocessing(size=32),
    "cifar100": Preprocessing(size=32),
    "imagenet": Preprocessing(size=224, crop=0.875, interpolation="bilinear"),
}
"""Data set -> what RobustBench itself does to its images; some models of ImageNet are evaluated at other sizes."""


def load(name: str, *, dataset: str = "cifar10", threat_model: str = "corruptions", **settings: Any) -> Classifier:
    """Return a model of RobustBench.

    Args:
        name: as on its leaderboard, such as `Hendrycks2020AugMix_ResNeXt`.
        dataset: what it was trained on: `cifar10`, `cifar100` or `imagenet`.
        threat_model: the leaderboard: `corruptions`, `Linf` or `L2`.
        **settings: others of `robustbench.utils.load_model`, such as `model_dir`.
    """
    what = f"robustbench:{name}"
    if dataset not in SIZES:
        raise unknown(f"dataset of {what}", dataset, SIZES)
    zoo = import_extra("robustbench.utils", "", what)
    try:
        network = zoo.load_model(model_name=name, dataset=dataset, threat_model=threat_model, **settings)
    except Exception as error:
        raise HapteraError(f"model {what}: RobustBench could not load it: {first_line(error)}") from error
    return Classifier(network, SIZES[dataset])
