"""One small data set in every layout that is read, made by whoever usually makes it."""

import csv
import io
import json
import tarfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

NAMES = ("ant", "bee", "cat")
LABELS = np.repeat([0, 1, 2], 4)
PIXELS = np.random.default_rng(0).integers(0, 256, (len(LABELS), 32, 32, 3), np.uint8)
FEATURES = {
    "image": {"_type": "Image"},
    "label": {"names": list(NAMES), "_type": "ClassLabel"},
}


def encode(pixels: np.ndarray, kind: str = "PNG") -> bytes:
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, kind)
    return out.getvalue()


def class_folders(root: Path) -> Path:
    for number, (pixels, label) in enumerate(zip(PIXELS, LABELS, strict=True)):
        place = root / NAMES[label] / f"{number:03d}.png"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(encode(pixels))
    return root


def table(root: Path) -> Path:
    class_folders(root / "files")
    with open(root / "list.csv", "w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["path", "label"])
        for number, label in enumerate(LABELS):
            rows.writerow([f"files/{NAMES[label]}/{number:03d}.png", NAMES[label]])
    return root / "list.csv"


def parquet(path: Path, pixels: np.ndarray = PIXELS, labels: np.ndarray = LABELS, group: int = 5) -> Path:
    """A file as on the hub: bytes in a struct, names of classes in the metadata of the schema."""
    path.parent.mkdir(parents=True, exist_ok=True)
    images = pa.array([{"bytes": encode(each), "path": None} for each in pixels])
    rows = pa.table({"image": images, "label": pa.array(labels, pa.int64())})
    about = json.dumps({"info": {"features": FEATURES}})
    pq.write_table(rows.replace_schema_metadata({"huggingface": about}), path, row_group_size=group)
    return path


def saved_dataset(root: Path) -> Path:
    """A folder by `save_to_disk`, of two files."""
    import datasets

    kinds = datasets.Features({"image": datasets.Image(), "label": datasets.ClassLabel(names=list(NAMES))})
    rows = {"image": [{"bytes": encode(each), "path": None} for each in PIXELS], "label": LABELS.tolist()}
    datasets.Dataset.from_dict(rows, features=kinds).save_to_disk(root, num_shards=2)
    return root


def tar(path: Path, suffixes: tuple[str, str] = ("png", "cls")) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w") as out:
        for number, (pixels, label) in enumerate(zip(PIXELS, LABELS, strict=True)):
            for suffix, content in zip(suffixes, (encode(pixels), str(label).encode()), strict=True):
                member = tarfile.TarInfo(f"{number:05d}.{suffix}")
                member.size = len(content)
                out.addfile(member, io.BytesIO(content))
    return path


def cifar_binary(root: Path) -> Path:
    root.mkdir(parents=True, exist_ok=True)
    planes = PIXELS.transpose(0, 3, 1, 2).reshape(len(PIXELS), -1)
    (root / "test_batch.bin").write_bytes(np.concatenate([LABELS[:, None].astype(np.uint8), planes], axis=1).tobytes())
    (root / "batches.meta.txt").write_text("\n".join(NAMES) + "\n\n")
    return root


def npz(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, images=PIXELS, labels=LABELS, classes=np.array(NAMES))
    return path


LAYOUTS = {
    "class folders": class_folders,
    "table": table,
    "parquet": lambda root: parquet(root / "data" / "test-00000-of-00001.parquet").parents[1],
    "saved dataset": saved_dataset,
    "tar": lambda root: tar(root / "shard-000.tar"),
    "CIFAR binary": cifar_binary,
    "npz": lambda root: npz(root / "images.npz"),
}
