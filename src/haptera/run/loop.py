"""The loop: an adapter goes through a stream once, and everything it says is kept, with time and memory of each step.

While the model works on a batch elsewhere than on the CPU, the next ones are read and shifted in a thread; on the CPU
such a thread takes from the model what it gives (`benchmarks/loop.py`). Memory: the outputs, and three batches.
The most memory that a step takes is, on a GPU, what torch's allocator gave out at most; on Linux without one the
resident memory of the process, whose high-water mark is set back first; elsewhere it is not known. Cost: about 50
microseconds.
"""

import logging
import platform
import re
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from haptera import __version__
from haptera.adapters import Adapter, Offline
from haptera.adapters.passes import check_outputs
from haptera.batch import Batch, Stream
from haptera.correctness import check_classes, check_targets
from haptera.errors import HapteraError
from haptera.outputs import Outputs, context_columns

log = logging.getLogger("haptera")
AHEAD = 2
WATCHED = 8
"""Steps whose memory is looked at, which costs the time of a small batch; later ones take no more."""
STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")
RESET_PEAK = "5"
"""What the kernel takes as "set the high-water mark to what is resident now"."""


def evaluate(adapter: Adapter, stream: Stream, keep: str = "float32") -> Outputs:
    """What the adapter says about the stream.

    Args:
        adapter: any adapter, on the device where its model is; it goes on from the state it has. One that is `Offline`
            learns from the whole stream and predicts it, as often as it says; `epoch` is then a column of the context.
        stream: read once, or twice for each epoch.
        keep: `float32` or `float16` logits, or `top5` (any number) for the largest and their indices.
    """
    epochs = adapter.epochs if isinstance(adapter, Offline) else 0
    collected = _Collector(stream, keep, max(epochs, 1))
    with torch.inference_mode(False):
        if not epochs:
            _one_pass(adapter, stream, collected, {})
        for epoch in range(1, epochs + 1):
            adapter.frozen = False
            adapter.adapt(stream)
            _one_pass(adapter.predictor(), stream, collected, {"epoch": epoch})
    return collected.finish(str(adapter.device))


def _one_pass(adapter: Adapter, stream: Stream, collected: "_Collector", context: dict[str, Any]) -> None:
    device = adapter.device
    for step, batch in enumerate(ahead(stream) if device.type != "cpu" else stream):
        inputs = batch.inputs.to(device)
        if step < WATCHED:
            forget_peak(device)
        start = time.perf_counter()
        logits = check_outputs(adapter(inputs), len(batch))
        if logits.is_cuda:
            torch.cuda.synchronize(logits.device)
        record = {"seconds": time.perf_counter() - start, **adapter.record}
        if step < WATCHED:
            record["peak_bytes"] = peak(device)
        collected.add(replace(batch, context={**batch.context, **context}) if context else batch, logits, record)


def versions() -> dict[str, str]:
    """Return the version of every library that affects the numbers."""
    return {
        "haptera": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
    }


def ahead(stream: Stream) -> Iterator[Batch]:
    """The batches of a stream in order, read a little before they are needed."""
    with ThreadPoolExecutor(1, "haptera-read") as reader:
        waiting = [reader.submit(stream.__getitem__, index) for index in range(min(AHEAD, len(stream)))]
        for index in range(len(stream)):
            batch = waiting.pop(0).result()
            if index + AHEAD < len(stream):
                waiting.append(reader.submit(stream.__getitem__, index + AHEAD))
            yield batch


def check_keep(keep: str) -> int | None:
    """How many of the largest logits are kept; None for all."""
    if keep in ("float32", "float16"):
        return None
    match = re.fullmatch(r"top([1-9]\d*)", keep)
    if not match:
        raise HapteraError(f"keep is {keep!r}; float32, float16 or top with a number, such as top5, was expected")
    return int(match[1])


class _Collector:
    """Arrays as long as the stream, or several times that, filled batch by batch."""

    def __init__(self, stream: Stream, keep: str, times: int = 1) -> None:
        self.stream, self.keep, self.top = stream, keep, check_keep(keep)
        self.at = 0
        self.ids = np.empty(stream.samples * times, np.int64)
        self.step = np.empty(stream.samples * times, np.int32)
        self.targets: np.ndarray | None = None
        self.arrays: dict[str, np.ndarray] = {}
        self.context: list[tuple[Mapping[str, Any], int]] = []
        self.records: list[dict[str, float]] = []
        self.columns = np.empty(0, np.int64)
        self.width = self.invalid = 0

    def add(self, batch: Batch, logits: torch.Tensor, record: dict[str, float]) -> None:
        """Keep one batch."""
        if not self.arrays:
            self._begin(batch, logits.shape[1])
        elif logits.shape[1] != self.width:
            raise HapteraError(f"the model returned {logits.shape[1]} classes after {self.width}")
        rows = slice(self.at, self.at + len(batch))
        if rows.stop > len(self.ids):
            raise HapteraError(
                f"the stream {self.stream.name!r} is longer than the {len(self.ids)} samples it promised"
            )
        self.ids[rows], self.step[rows] = batch.ids.numpy(), len(self.records)
        if self.targets is not None and batch.targets is not None:
            self.targets[rows] = batch.targets.numpy()
            check_targets(self.targets[rows], self.width, self.stream.classes)
        if len(self.columns) < self.width:
            logits = logits[:, torch.from_numpy(self.columns).to(logits.device)]
        if self.top is None:
            values = logits.float().cpu().numpy()
            self.arrays["logits"][rows] = values
            wrong = np.isnan(values)  # in NumPy: of few logits, calls of torch cost more
            self.invalid += int(wrong.any(1).sum()) if wrong.any() else 0
        else:
            self.invalid += int(torch.isnan(logits).any(1).sum())
            best, indices = logits.float().topk(self.arrays["top_values"].shape[1], dim=1)
            self.arrays["top_values"][rows], self.arrays["top_indices"][rows] = best.cpu(), indices.cpu()
        self.context.append((batch.context, len(batch)))
        self.records.append(record)
        self.at = rows.stop

    def _begin(self, batch: Batch, width: int) -> None:
        self.width, classes, size = width, self.stream.classes, len(self.ids)
        check_classes(classes, width, self.stream.class_names if batch.targets is not None else None)
        self.columns = np.arange(width) if classes is None else classes.columns(width)
        if batch.targets is not None:
            self.targets = np.empty(size, np.int64)
        if self.top is None:
            self.arrays["logits"] = np.empty((size, len(self.columns)), self.keep)
        else:
            best = min(self.top, len(self.columns))
            self.arrays = {
                "top_values": np.empty((size, best), np.float32),
                "top_indices": np.empty((size, best), np.int32),
            }

    def _class_names(self) -> np.ndarray | None:
        """The name of each output, where the data names its classes and needs no mapping."""
        names = self.stream.class_names if self.stream.classes is None else None
        return np.array(names) if names is not None and len(names) == self.width else None

    def finish(self, device: str) -> Outputs:
        """Everything that was kept."""
        if self.at != len(self.ids):
            raise HapteraError(f"the stream {self.stream.name!r} ended after {self.at} of {len(self.ids)} samples")
        if self.invalid:
            log.warning(
                "%d of %d predictions on %s are NaN; they count as wrong", self.invalid, self.at, self.stream.label
            )
        classes, names = self.stream.classes, dict.fromkeys(key for record in self.records for key in record)
        return Outputs(
            arrays=self.arrays,
            ids=self.ids,
            targets=self.targets,
            step=self.step,
            context=context_columns(self.context),
            steps={key: np.array([record.get(key, np.nan) for record in self.records]) for key in names},
            accepted=None if classes is None else classes.matrix(self.width),
            columns=self.columns if len(self.columns) < self.width else None,
            classes=self._class_names(),
            provenance={
                "versions": versions(),
                "threads": torch.get_num_threads(),
                "device": device,
                "keep": self.keep,
                "invalid": self.invalid,
                "dropped": 0 if classes is None else classes.dropped,
            },
        )


def forget_peak(device: torch.device) -> None:
    """Begin a stretch."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        return
    try:
        CLEAR.write_text(RESET_PEAK)
    except OSError:
        return


def peak(device: torch.device) -> float:
    """Bytes at most since `forget_peak`; NaN where the system does not say."""
    if device.type == "cuda":
        return float(torch.cuda.max_memory_allocated(device))
    try:
        lines = STATUS.read_text().splitlines()
    except OSError:
        return float("nan")
    found = [line.split()[1] for line in lines if line.startswith("VmHWM:")]
    return 1024.0 * int(found[0]) if found else float("nan")
