"""Pose data, models and adapters by what a person writes: a file, `drawn:individuals=30`, `batchnorm:prior=16`."""

import logging
from collections.abc import Sequence
from inspect import signature
from pathlib import Path
from typing import Any

from haptera import catalog
from haptera.errors import HapteraError, NotApplicable, check_keys, unknown
from haptera.files.sleap import is_analysis
from haptera.pose.backbone import import_backbone
from haptera.pose.checkpoints import check_result
from haptera.pose.data import PoseData
from haptera.pose.drawn import drawn_animals
from haptera.pose.evaluate import MakeAdapter
from haptera.pose.keypoint_labels import KeypointLabels
from haptera.pose.labels import read_labels
from haptera.pose.model import PoseModel
from haptera.pose.network import PoseNetwork, as_network
from haptera.pose.snapshots import SUFFIXES, load_snapshot
from haptera.pose.vitpose import load_keypoint_model
from haptera.run.around import configured
from haptera.run.parts import Spec, check_adapter, from_flags, make_adapter

log = logging.getLogger("haptera")

USUAL = ("none", "batchnorm:prior=0")
"""Adapters that are compared where nobody names any."""
ADAPTERS = {"keypoint_labels": KeypointLabels}
"""Adapters for keypoints alone, beside those of the catalog."""


def open_pose(
    source: str | Path,
    images: Path | None = None,
    *,
    size: tuple[int, int] | None = None,
    scorer: str | None = None,
    individual: str | None = None,
    animals: str | None = None,
) -> PoseData:
    """Return frames with keypoints; where a frame has several animals, a crop around each.

    Args:
        source: `drawn`, with settings of `drawn_animals` such as `drawn:individuals=30,frames=40`; a `.csv` or `.h5` of
            DeepLabCut, its project or `config.yaml`, see `read_deeplabcut`; a `.csv` of Lightning Pose; a `.slp` of
            SLEAP; or a `.json` of COCO.
        images: the folder that paths of images begin at; found by itself if they are beside the table or above it.
        size: height and width to which images of different sizes are brought.
        scorer: whose labels of a table with several.
        individual: what says whose image it is: see `name_individuals`; in a file of COCO also a field, see
            `read_coco_labels`.
        animals: in a file of COCO, `one` for images with exactly one animal (the default), `all` for every animal.
    """
    if is_drawn(source):
        settings = dict(Spec.parse(str(source)).arguments)
        check_keys("setting of drawn animals", settings, signature(drawn_animals).parameters)
        if size is not None:
            settings = {"height": size[0], "width": size[1]} | settings
        return drawn_animals(**settings)
    path = Path(source)
    if is_analysis(path):
        raise HapteraError(f"{path} has keypoints of a video, and no images; the .slp file of SLEAP has both")
    return read_labels(path, scorer=scorer, individual=individual, animals=animals).frames(images, size, path.name)


def read_coco(
    path: Path,
    images: Path | None = None,
    *,
    size: tuple[int, int] | None = None,
    individual: str | None = None,
    animals: str | None = None,
) -> PoseData:
    """Read labelled images of COCO; see `open_pose` for the arguments, which also takes other formats."""
    return read_labels(path, individual=individual, animals=animals).frames(images, size, path.name)


def is_drawn(source: str | Path) -> bool:
    """Say whether animals are to be drawn, rather than read from a file."""
    return str(source).partition(":")[0] == "drawn"


def read_size(text: str | None) -> tuple[int, int] | None:
    """Return height and width.

    >>> read_size("160x288")
    (160, 288)
    """
    if text is None:
        return None
    height, _, width = text.partition("x")
    if not (height.isdigit() and width.isdigit()):
        raise HapteraError(f"--size is {text!r}; HEIGHTxWIDTH was expected, such as 160x288")
    return int(height), int(width)


def read_backbone(text: str) -> dict[str, Any]:
    """Return what `PoseModel` is told: `small:width=8` by its name, `file.py:build` as what that function returns."""
    spec = Spec.parse(text) if "=" in text else Spec(text, {})
    if ":" not in spec.name:
        return {"backbone": spec.name, "settings": dict(spec.arguments)}
    place, _, function = spec.name.rpartition(":")
    origin = f"{Path(place).name if place.endswith('.py') else place}:{function}"
    return {"backbone": import_backbone(spec.name, spec.arguments), "origin": origin}


def open_model(source: str | Path, backbone: str | None = None, config: Path | None = None) -> PoseNetwork:
    """Return a trained network; one that was damaged since is refused.

    Args:
        source: what `pose train` or `PoseModel.save` wrote; a snapshot of DeepLabCut 3, `.pt`, see `load_snapshot`; a
            folder or `config.json` of transformers, see `load_keypoint_model`; or `file.py:function`, which returns a
            network as `as_network` makes one.
        backbone: where the model was trained with one of its owner's, `file.py:function` again.
        config: the `pytorch_config.yaml` of a snapshot, where it is not beside it.
    """
    path = Path(source)
    if config is not None and path.suffix not in SUFFIXES:
        raise HapteraError(f"--config is {config}, which is for a snapshot (.pt) of DeepLabCut, and not for {source}")
    other = _open_other(path, str(source), config)
    if other is not None:
        if backbone is not None:
            raise HapteraError(f"--backbone is {backbone!r}, which is for what pose train wrote, and not {source}")
        return other
    own = None if backbone is None else read_backbone(backbone)["backbone"]
    if isinstance(own, str):
        raise HapteraError(f"--backbone is {backbone!r}, which the file says by itself; file.py:function was expected")
    check_result(path)
    return PoseModel.load(path, own)


def open_adapter(text: str) -> tuple[str, MakeAdapter]:
    """Return the label and the adapter of `name:key=value`: one of `ADAPTERS`, of the catalog, or of one's own.

    >>> open_adapter("keypoint_labels:threshold=0.8")[0]
    'keypoint_labels:threshold=0.8'
    """
    (table,) = from_flags([], adapters=[text])["adapters"]
    name = str(table["use"])
    if name in ADAPTERS:
        settings = {key: value for key, value in table.items() if key not in ("use", "name")}
        check_adapter(ADAPTERS[name], name, settings)
        return str(table.get("name") or catalog.label(name, settings)), configured(ADAPTERS[name], settings)
    if ":" not in name and name not in catalog.entries("adapters"):
        raise unknown("adapter", name, [*ADAPTERS, *catalog.entries("adapters")])
    return make_adapter(table, Path())


def _open_other(path: Path, name: str, config: Path | None) -> PoseNetwork | None:
    """Return a network that somebody else trained; None for a file of ours."""
    if path.suffix in SUFFIXES:
        return load_snapshot(path, config)
    if path.is_dir() or path.name == "config.json":
        return load_keypoint_model(path)
    if ":" not in name:
        return None
    spec = Spec.parse(name) if "=" in name else Spec(name, {})
    network = import_backbone(spec.name, spec.arguments, "pose network")
    if not isinstance(network, PoseNetwork) and not hasattr(network, "parts"):
        raise HapteraError(
            f"{name} gave a {type(network).__name__} that does not say its parts; return "
            "haptera.pose.as_network(network, parts), or give it an attribute parts"
        )
    return as_network(network, getattr(network, "parts", ())).eval()


def open_adapters(names: Sequence[str], network: PoseNetwork) -> dict[str, MakeAdapter]:
    """Return the adapters that are named; where none is, the usual ones that the network can have, with a warning."""
    adapters = dict(map(open_adapter, names or USUAL))
    for name in [] if names else list(adapters):
        try:
            adapters[name](network)
        except NotApplicable as error:
            del adapters[name]
            log.warning("%s is left out: %s", name, error)
    return adapters
