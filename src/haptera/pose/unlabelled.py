"""Videos without labels: how far a video is from the labelled frames, and which of its frames to label next.

The confidence of a frame is the mean over its parts. The distance of a video is the probability that a frame of it has
less confidence than a labelled frame (the area under the ROC curve, ties count half): .5 for frames like the labelled
ones, 1 where every frame is less certain than every labelled one. Videos are ranked by their mean confidence, which
does not stop at 1. Frames to label are those with the least confidence, `apart` from one another in the same video, for
neighbours teach the same. Nothing here looks at a label. Cost: one pass of the network over a sample of each video.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from haptera.adapters import share
from haptera.adapters.passes import device_of
from haptera.errors import HapteraError
from haptera.files.fingerprint import fingerprint, of_model
from haptera.files.video import Video
from haptera.pose.data import PoseData
from haptera.pose.network import PoseNetwork
from haptera.pose.predict import predict
from haptera.pose.video import to_batch
from haptera.run.ledger import Piece
from haptera.run.tasks import JsonTask

FAR = 0.9
"""A video with a larger distance is called out of domain, unless another limit is asked for: a choice, not a fit."""


def distance(confidence: Sequence[float] | np.ndarray, reference: Sequence[float] | np.ndarray) -> float:
    """Return the probability that a value is below one of the reference; ties count half, and NaN is below all numbers.

    >>> distance([0.1, 0.5], [0.5, 0.9])
    0.875
    """
    own, other = (np.nan_to_num(np.asarray(given, float), nan=-np.inf) for given in (confidence, reference))
    own, other = own[:, None], other[None]
    return float(((own < other) + 0.5 * (own == other)).mean())


class LabelledConfidence(JsonTask):
    """The confidence of each labelled frame."""

    def __init__(self, network: PoseNetwork, data: PoseData, batch_size: int) -> None:
        self.network, self.data, self.batch_size, self.work = network, data, batch_size, len(data)
        key = fingerprint("labelled", of_model(network), data.fingerprint(), batch_size)
        self.piece = Piece(key, f"videos/{key}.json", "labelled frames")

    def run(self) -> Any:
        """Predict the frames."""
        return predict(self.network, self.data, batch_size=self.batch_size).confidence.mean(1).tolist()


class VideoConfidence(JsonTask):
    """The confidence of a sample of a video."""

    def __init__(self, network: PoseNetwork, path: Path, size: Any, sample: int, batch_size: int) -> None:
        self.network, self.path, self.size, self.sample, self.batch_size = network, path, size, sample, batch_size
        check_video(path)
        stat, self.work = path.stat(), sample
        key = fingerprint(
            "video and times", of_model(network), str(path), stat.st_size, stat.st_mtime_ns, size, sample, batch_size
        )
        self.piece = Piece(key, f"videos/{key}.json", path.name)

    def run(self) -> Any:
        """Predict the sample."""
        video = Video(self.path)
        numbers: list[int] = []
        found: list[float] = []
        device, network = device_of(self.network), share(self.network).eval()
        sample = video.read_some(video.choose(self.sample))
        while batch := list(islice(sample, self.batch_size)):
            numbers += [number for number, _ in batch]
            with torch.inference_mode():
                outputs = network(to_batch(np.stack([frame for _, frame in batch]), self.size, device))
                found += self.network.decode(outputs)[1].mean(1).tolist()
        seconds = [video.seconds(number) for number in numbers]
        about = {"frames": len(video), "shape": [video.height, video.width]}
        return {"numbers": numbers, "seconds": seconds, "confidence": found, **about}


def check_video(path: Path) -> None:
    """Refuse a path at which there is no file."""
    if not path.is_file():
        raise HapteraError(f"there is no video {path}")


def name_videos(paths: Sequence[Path]) -> dict[str, Path]:
    """Return a name for each video: that of the file, and of its folder where two files have the same; each file once.

    >>> list(name_videos([Path("monday/rex.mp4"), Path("tuesday/rex.mp4"), Path("ina.avi"), Path("ina.avi")]))
    ['monday/rex', 'tuesday/rex', 'ina']
    """
    once = list({path.resolve(): path for path in paths}.values())
    shared = Counter(path.stem for path in once)
    named: dict[str, Path] = {}
    for path in once:
        name = path.stem if shared[path.stem] == 1 else f"{path.resolve().parent.name}/{path.stem}"
        named[name if name not in named else str(path)] = path
    return named


def video_rows(videos: Mapping[str, Mapping[str, Any]], reference: Sequence[float], far: float = FAR) -> pd.DataFrame:
    """Return a row for each video: `video`, `frames`, `confidence`, `distance`, `out`; the least certain first.

    Args:
        videos: name -> what `VideoConfidence` gives.
        reference: confidence of the labelled frames.
        far: the distance above which a video is called out of domain.
    """
    rows = [
        {
            "video": name,
            "frames": each["frames"],
            "confidence": float(np.mean(each["confidence"])),
            "distance": distance(each["confidence"], reference),
        }
        for name, each in videos.items()
    ]
    frame = pd.DataFrame(rows, columns=["video", "frames", "confidence", "distance"])
    frame = frame.sort_values("confidence", kind="stable").reset_index(drop=True)
    return frame.assign(out=frame["distance"] > far)


def label_next(videos: Mapping[str, Mapping[str, Any]], most: int = 20, apart: float = 1.0) -> pd.DataFrame:
    """Return which frames to label: `video`, `frame`, `seconds`, `confidence`, the least certain first.

    Args:
        videos: name -> what `VideoConfidence` gives.
        most: how many frames.
        apart: seconds between two of the same video, at least.
    """
    every = [
        {"video": name, "frame": number, "seconds": second, "confidence": value}
        for name, each in videos.items()
        for number, second, value in zip(each["numbers"], each["seconds"], each["confidence"], strict=True)
    ]
    chosen: list[dict[str, Any]] = []
    for row in sorted(every, key=lambda row: row["confidence"]):
        near = (each for each in chosen if each["video"] == row["video"])
        if len(chosen) < most and all(abs(each["seconds"] - row["seconds"]) >= apart for each in near):
            chosen.append(row)
    return pd.DataFrame(chosen, columns=["video", "frame", "seconds", "confidence"])
