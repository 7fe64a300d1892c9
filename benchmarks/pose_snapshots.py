"""Keypoints of DeepLabCut 3's own code beside those of `load_snapshot`, on the same weights.

    python benchmarks/pose_snapshots.py CHECKOUT

CHECKOUT is a copy of DeepLabCut's repository, version 3; timm must be installed. DeepLabCut itself need not be: only
its folder `models` is imported, and packages that it imports for other ends are replaced by empty ones. For each
backbone its code builds a network with random weights and writes a snapshot, both predict the same images, and the
largest difference is printed. The aim is half a pixel.
"""

import argparse
import copy
import importlib.abc
import importlib.machinery
import importlib.util
import sys
import tempfile
import types
from pathlib import Path
from unittest.mock import MagicMock

import torch
import yaml

from haptera.pose import load_snapshot

AIM = 0.5
PARTS = ["snout", "leftear", "rightear", "tailbase"]
CHANNELS = {"resnet50_gn": 2048, "resnet50": 2048, "hrnet_w32": 32}
EMPTY = (
    "torchvision",
    "albumentations",
    "cv2",
    "dlclibrary",
    "einops",
    "filterpy",
    "imageio",
    "imgaug",
    "matplotlib",
    "numba",
)
EMPTY += ("ruamel", "skimage", "statsmodels", "tables", "omegaconf")


class EmptyPackages(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Stands for packages that are not installed, or do not import beside this torch."""

    def find_spec(self, name, path, target=None):
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if name.split(".")[0] in EMPTY else None

    def create_module(self, spec):
        module = MagicMock(name=spec.name, __path__=[], __spec__=spec)
        module.__name__ = spec.name
        return module

    def exec_module(self, module):
        pass


def configuration(name: str, checkout: Path) -> dict:
    folder = checkout / "deeplabcut" / "pose_estimation_pytorch" / "config" / "base"
    head = yaml.safe_load((folder / "head_bodyparts.yaml").read_text())
    head["target_generator"]["num_heatmaps"] = len(PARTS)
    head["heatmap_config"]["channels"] = [CHANNELS[name], len(PARTS)]
    head["locref_config"]["channels"] = [CHANNELS[name], 2 * len(PARTS)]
    backbone = {"type": "HRNet" if name.startswith("hr") else "ResNet", "model_name": name}
    backbone |= {} if name.startswith("hr") else {"output_stride": 16}
    model = {"backbone": backbone, "backbone_output_channels": CHANNELS[name], "heads": {"bodypart": head}}
    metadata = {"bodyparts": PARTS, "individuals": ["animal"]}
    return {"method": "bu", "metadata": metadata, "data": {"inference": {"normalize_images": True}}, "model": model}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("checkout", type=Path)
    checkout = parser.parse_args().checkout
    sys.meta_path.insert(0, EmptyPackages())
    for name in ("deeplabcut", "deeplabcut.pose_estimation_pytorch"):
        package = types.ModuleType(name)
        package.__path__ = [str(checkout / name.replace(".", "/"))]
        sys.modules[name] = package
    from deeplabcut.pose_estimation_pytorch.models.model import PoseModel

    mean, std = (torch.tensor(each)[:, None, None] for each in ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)))
    for name in CHANNELS:
        torch.manual_seed(1)
        config, images = configuration(name, checkout), torch.rand(2, 3, 96, 128)
        theirs = PoseModel.build(copy.deepcopy(config["model"])).eval()
        for key, tensor in theirs.state_dict().items():
            if key.startswith("heads"):
                tensor.normal_(0, 0.05)
            elif "running" in key:
                tensor.uniform_(0.5, 1.5)
        with tempfile.TemporaryDirectory() as folder, torch.no_grad():
            torch.save({"model": theirs.state_dict(), "metadata": {"epoch": 1}}, Path(folder) / "snapshot-001.pt")
            (Path(folder) / "pytorch_config.yaml").write_text(yaml.safe_dump(config))
            expected = theirs.get_predictions(theirs((images - mean) / std))["bodypart"]["poses"][:, 0]
            ours = load_snapshot(Path(folder) / "snapshot-001.pt")
            keypoints, confidence = ours.decode(ours(images))
        apart = float((keypoints - expected[..., :2]).abs().max())
        surer = float((confidence - expected[..., 2]).abs().max())
        print(f"{name:<14} {apart:.4f} pixels apart (aim {AIM}), confidence {surer:.1e}")


if __name__ == "__main__":
    main()
