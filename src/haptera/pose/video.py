"""Prediction of a video: frames are streamed, statistics are those of the video, and a stopped run goes on.

Source: thesis chapter 5, where the statistics of BatchNorm are estimated anew for each individual, that is for each
video. An adapter first sees a sample of frames from all over the video, in one batch, then every frame is predicted
with what it found, learning nothing more. So a frame's keypoints depend neither on the batch it happens to be in nor on
where a run was stopped, and a frame costs what it costs without adaptation. Frames that follow each other are nearly
equal; a batch of them would say more about a moment than about the animal. `KeypointLabels` sees the sample as threes
that follow each other, so that it can tell which keypoints agree in time.
`prior="auto"` chooses N by a first pass over the sample.
Cost: the network on every frame, decoding, one or two passes over the sample; memory of one batch, whatever the length.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from haptera.adapters import Adapter, BatchNorm, NoAdaptation
from haptera.adapters.passes import device_of
from haptera.adapters.wrapper import Wrapper
from haptera.files.deeplabcut import KeypointTable
from haptera.files.fingerprint import fingerprint, of_model
from haptera.files.npz import read_npz
from haptera.files.sleap import check_video_target, is_analysis, write_analysis
from haptera.files.video import Video
from haptera.pose.evaluate import MakeAdapter
from haptera.pose.frames import fit_pixels, fit_shape
from haptera.pose.keypoint_labels import THREE, KeypointLabels
from haptera.pose.network import PoseNetwork
from haptera.pose.predict import AT_ONCE, Poses, check_adapter, finish_table
from haptera.run.ledger import Piece
from haptera.run.tasks import Task

SAMPLE = 32
BARE, ADAPTED = "none", "adapted"


@dataclass(frozen=True, eq=False)
class VideoPoses:
    """Keypoints of a video.

    Attributes:
        poses: name of an adapter -> what was predicted with it.
        parts: their names.
        skeleton: pairs of parts.
        prior: the N that was used, of an adapter that has one.
    """

    poses: Mapping[str, Poses]
    parts: tuple[str, ...]
    skeleton: tuple[tuple[str, str], ...]
    prior: float | None = None

    def table(self, adapter: str, scorer: str = "haptera") -> KeypointTable:
        """Return the predictions with one adapter as a table, whose rows are named by the numbers of frames."""
        poses = self.poses[adapter]
        return poses.table(self.parts, np.arange(len(poses.keypoints)).astype(str).tolist(), scorer)


def learn_video(network: PoseNetwork, make: MakeAdapter, video: Video, size: Any, sample: int = SAMPLE) -> Adapter:
    """Return an adapter that has seen a sample of a video, and learns no more.

    Args:
        network: what predicts; it is not changed.
        make: from the network to an adapter.
        video: whose frames.
        size: height and width to which frames are brought, or None.
        sample: how many frames are seen.
    """
    adapter = make(network)
    check_adapter(adapter)
    if not isinstance(adapter, NoAdaptation):
        inner = adapter.innermost if isinstance(adapter, Wrapper) else adapter
        if isinstance(inner, KeypointLabels):
            inner.triples = True
            numbers = triples(len(video), video.choose(max(sample // THREE, 1)))
            found = dict(video.read_some(numbers))
            threes = [numbers[place : place + THREE] for place in range(0, len(numbers), THREE)]
            seen = np.stack([found[each] for three in threes if found.keys() >= set(three) for each in three])
        else:
            seen = video.sample(sample)
        frames = to_batch(seen, size, device_of(network))
        adapter(frames)
        if isinstance(inner, BatchNorm) and inner.auto is not None:
            inner.auto.sums.zero_()  # the same images are not seen twice
            inner.auto.images.zero_()
            adapter(frames)
    return adapter.predictor() if isinstance(adapter, Wrapper) else _frozen(adapter)


def triples(frames: int, places: list[int]) -> list[int]:
    """Return numbers of frames, three in a row around each place, none of them twice.

    >>> triples(9, [0, 4, 5, 8])
    [0, 1, 2, 3, 4, 5, 6, 7, 8]
    """
    starts = sorted({min(place, max(frames - THREE, 0)) // THREE * THREE for place in places})
    return [start + step for start in starts for step in range(THREE) if start + step < frames]


def _frozen(adapter: Adapter) -> Adapter:
    adapter.frozen = True
    return adapter


def to_batch(frames: np.ndarray, size: tuple[int, int] | None, device: torch.device) -> torch.Tensor:
    """Return frames `(batch, height, width, 3)`, uint8, as a network takes them, brought to a size if there is one."""
    if size is not None and size != frames.shape[1:3]:
        fitted = np.zeros((len(frames), *size, 3), np.uint8)
        for row, frame in enumerate(frames):
            pixels = fit_pixels(frame, fit_shape(np.array([frame.shape[:2]]), size)[0])
            fitted[row, : pixels.shape[0], : pixels.shape[1]] = pixels
        frames = fitted
    # Channels stay last in memory, where networks of convolutions want them.
    return torch.from_numpy(frames).to(device).permute(0, 3, 1, 2).float().div_(255)


class _Cursor:
    """Frames of a video in order; pieces that follow each other go on in the same pass of decoding."""

    def __init__(self, video: Video) -> None:
        self.video, self.place = video, -1
        self.frames: Iterator[tuple[int, np.ndarray]] = iter(())

    def batches(self, start: int, stop: int, batch_size: int) -> Iterator[tuple[list[int], np.ndarray]]:
        """Yield numbers and pixels of the frames from `start` to before `stop`; some are missing in a damaged file."""
        if start != self.place:
            self.frames = self.video.read_numbered(start)
        self.place = stop
        frames_before = self._before(stop)
        while batch := list(islice(frames_before, batch_size)):
            numbers, frames = zip(*batch, strict=True)
            yield list(numbers), np.stack(frames)

    def _before(self, stop: int) -> Iterator[tuple[int, np.ndarray]]:
        for number, frame in self.frames:
            if number >= stop:
                self.frames = chain([(number, frame)], self.frames)
                return
            yield number, frame
            if number + 1 == stop:
                return


class _Frames(Task[dict[str, np.ndarray]]):
    """Some frames of a video, predicted with every adapter."""

    def __init__(self, span: tuple[int, int], key: str, **settings: Any) -> None:
        self.span, self.settings, self.work = span, settings, span[1] - span[0]
        key = fingerprint(key, span)
        self.piece = Piece(key, f"frames/{key}.npz", f"frame {span[0]}")

    def make(self) -> dict[str, np.ndarray]:
        start, stop = self.span
        networks: Mapping[str, nn.Module] = self.settings["learn"]()
        network, size = self.settings["network"], self.settings["size"]
        keypoints = np.full((len(networks), stop - start, len(network.parts), 2), np.nan, np.float32)
        confidence = np.zeros(keypoints.shape[:3], np.float32)
        device = device_of(network)
        with torch.inference_mode():
            for numbers, frames in self.settings["cursor"].batches(start, stop, self.settings["batch_size"]):
                batch = to_batch(frames, size, device)
                rows = np.array(numbers) - start
                for place, model in enumerate(networks.values()):
                    found = network.decode(model(batch))
                    keypoints[place, rows], confidence[place, rows] = (each.cpu().numpy() for each in found)
        if size is not None:
            shape = np.array([[self.settings["cursor"].video.height, self.settings["cursor"].video.width]])
            factors = (fit_shape(shape, size) / shape)[0, ::-1]
            keypoints = ((keypoints + 0.5) / factors - 0.5).astype(np.float32)
        return {"keypoints": keypoints, "confidence": confidence}

    def write(self, result: dict[str, np.ndarray], path: Path) -> None:
        with path.open("wb") as file:
            np.savez(file, **result)  # type: ignore[arg-type]

    def read(self, path: Path) -> dict[str, np.ndarray]:
        return read_npz(path)


def predict_video(
    network: PoseNetwork,
    path: Path,
    out: Path,
    scorer: str = "haptera",
    *,
    adapters: Mapping[str, MakeAdapter] | None = None,
    size: tuple[int, int] | None = None,
    batch_size: int = 32,
    sample: int = SAMPLE,
    progress: bool | None = None,
) -> VideoPoses:
    """Write the keypoints of a video as a table, and return them.

    Args:
        network: what predicts; it is not changed.
        path: the video.
        out: a `.csv` or `.h5` as DeepLabCut reads it, or an `.analysis.h5` as SLEAP does. Until it is finished, what is
            finished of it is kept beside it in a folder of the name with `.unfinished`, from which the same call goes
            on.
        scorer: who the table says predicted.
        adapters: name -> from the network to an adapter; the table has what was predicted with the last.
        size: height and width to which frames are brought; as the network says if left out.
        batch_size: frames in a pass.
        sample: frames from which an adapter takes what it needs.
        progress: None shows it where somebody is looking.
    """
    check_video_target(out)
    video, size = Video(path), network.size if size is None else size
    adapters = {BARE: NoAdaptation} if adapters is None else adapters
    for make in adapters.values():
        check_adapter(make(network))
    learner = _Learner(network, adapters, video, size, sample)
    stat = path.stat()
    told = (of_model(network), str(path.absolute()), stat.st_size, stat.st_mtime_ns)
    key = fingerprint(*told, dict(adapters), size, batch_size, sample)
    settings = {"learn": learner, "network": network, "size": size, "batch_size": batch_size, "cursor": _Cursor(video)}
    step = AT_ONCE * batch_size
    spans = [(start, min(start + step, len(video))) for start in range(0, len(video), step)]
    tasks = [_Frames(span, key, **settings) for span in spans]

    def collect(found: list[dict[str, np.ndarray]]) -> VideoPoses:
        together = [np.concatenate([each[name] for each in found], 1) for name in ("keypoints", "confidence")]
        poses = {name: Poses(together[0][place], together[1][place]) for place, name in enumerate(adapters)}
        return VideoPoses(poses, network.parts, network.skeleton, learner.prior())

    def write(result: VideoPoses) -> None:
        table = result.table([*adapters][-1], scorer)
        if is_analysis(out):
            write_analysis(out, table, network.skeleton, str(path))
        else:
            table.write(out)

    return finish_table(tasks, out, collect, write, progress)


class _Learner:
    """The adapters after they saw the sample, made when the first frame needs them."""

    def __init__(
        self, network: PoseNetwork, adapters: Mapping[str, MakeAdapter], video: Video, size: Any, sample: int
    ) -> None:
        self.network, self.adapters, self.video, self.size, self.sample = network, adapters, video, size, sample
        self.made: dict[str, nn.Module] = {}

    def __call__(self) -> Mapping[str, nn.Module]:
        if not self.made:
            for name, make in self.adapters.items():
                self.made[name] = learn_video(self.network, make, self.video, self.size, self.sample)
        return self.made

    def prior(self) -> float | None:
        adapter = self().get([*self.adapters][-1])
        inner = adapter.innermost if isinstance(adapter, Wrapper) else adapter
        if not isinstance(inner, BatchNorm):
            return None
        return float(inner.layers[0].prior)
