"""Videos, one frame after the other: read from any place without holding more than one, and written whole.

Needs PyAV (`pip install 'haptera[pose]'`), which brings FFmpeg along. The number of a frame is its rank among the times
of the packets, which are read first without being decoded, so reading from frame 1,500 gives the same pixels as reading
all and leaving out 1,500. As FFmpeg and OpenCV do it, frames that a file keeps but does not show (those before the cut
of a trimmed file) have no number, and frames of a camera that was held sideways are turned as the file says. What
cannot be decoded is left out with a warning; where times can be trusted, the frames after it keep their numbers.
Cost: decoding; to begin in the middle, from the key frame before; to open a file, its first frames.
"""

import logging
from collections.abc import Iterable, Iterator
from fractions import Fraction
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np

from haptera.errors import HapteraError, first_line
from haptera.extras import import_extra
from haptera.files.atomic import whole

SUFFIXES = (".mp4", ".avi", ".mov", ".mkv", ".m4v", ".mpg", ".mpeg", ".webm", ".wmv")
CODECS = ("libx264", "mpeg4")
MANY_KEYS = 8
"""From so many key frames on, a sample of the video is taken near them, which saves decoding most of it."""
APART = 8
"""Frames between two of a sample after the same key frame."""
MICROSECONDS = 1_000_000
FIRST = 24
"""Frames that are decoded when a file is opened; more than a codec may reorder."""
INDEXED = {"mp4", "matroska", "avi", "asf"}
"""Containers that say where their key frames are; in others the time of a frame is not certain in the middle."""
UNTURNED = (False, False, False)
WHOLE = 0.9
"""Of the frames that a header promises; with fewer a file is said to be cut off."""

log = logging.getLogger("haptera")


def is_video(path: Path) -> bool:
    """Say whether a file has the name of a video."""
    return path.suffix.lower() in SUFFIXES


class Video:
    """A file of frames.

    Args:
        path: of the file.

    Attributes:
        height: of a frame as it is shown.
        width: of a frame as it is shown.
        rate: frames in a second.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._damaged, self._ranks = False, dict[int | None, int]()
        if not path.is_file():
            raise HapteraError(f"there is no video {path}")
        with self._open() as (container, stream):
            self._stored = int(stream.height), int(stream.width)
            self.rate = Fraction(stream.average_rate or 25)
            self._tick = stream.time_base
            promised, lasting = _promised(container, stream), _lasting(stream)
            indexed = not INDEXED.isdisjoint(container.format.name.split(","))
            every = [(each.is_discard, each.pts, each.is_keyframe) for each in container.demux(stream) if each.size]
        packets = [(time, key) for hidden, time, key in every if not hidden]
        promised = lasting if len(packets) < len(every) else promised  # of a trimmed file the header counts all
        if not packets or not self._stored[0]:
            raise HapteraError(f"{path} has no frames")
        if len(packets) < WHOLE * promised:
            log.warning(
                "%s has %d frames where its header says %d; it may have been cut off, what is there is read",
                path, len(packets), promised,
            )  # fmt: skip
        times = {time for time, _ in packets}
        self._timed = None not in times and len(times) == len(packets)
        packets = sorted(packets) if self._timed else packets
        self._times = [time for time, _ in packets]
        keys = [number for number, (_, key) in enumerate(packets) if key]
        with self._open() as (container, stream):
            first = list(islice(self._decode(container, stream), FIRST))
        if not first:
            raise HapteraError(f"{path} is damaged: none of its {len(self)} frames can be decoded")
        self._turn = _turn(first[0])
        self.height, self.width = self._stored[::-1] if self._turn[0] else self._stored
        self._ranks = {time: number for number, time in enumerate(self._times)} if indexed and self._timed else {}
        ranks = [self._ranks.get(frame.pts, -1) for frame in first]
        if min(ranks) < 0 or any(later <= earlier for earlier, later in pairwise(ranks)):
            self._ranks = {}  # decoded frames have other times, or another order
        self._keys = keys if self._ranks and self._enterable(keys) else []

    def __len__(self) -> int:
        return len(self._times)

    def seconds(self, number: int) -> float:
        """Return when a frame is shown, in seconds from the first, whether or not frames are at even distances."""
        if not self._timed or not self._tick:
            return float(number / self.rate)
        return float((self._times[number] - self._times[0]) * self._tick)

    def read(self, start: int = 0, stop: int | None = None) -> Iterator[np.ndarray]:
        """Yield frames `(height, width, 3)`, uint8, from number `start` to before `stop`, as far as there are any."""
        yield from (frame for _, frame in self.read_numbered(start, stop))

    def read_numbered(self, start: int = 0, stop: int | None = None) -> Iterator[tuple[int, np.ndarray]]:
        """Yield frames with their numbers; of a damaged file some are missing."""
        decoded = self._decoded(start, len(self) if stop is None else stop)
        yield from ((number, self._pixels(frame)) for number, frame in decoded)

    def _decoded(self, start: int, stop: int) -> Iterator[tuple[int, Any]]:
        """Yield numbers and decoded frames, which are not yet pixels: that costs more than decoding."""
        stop = min(stop, len(self))
        if start >= stop:
            return
        for seek in (any(0 < key <= start for key in self._keys), False):
            with self._open() as (container, stream):
                if seek:
                    container.seek(self._times[start], stream=stream)
                number = -1
                for place, frame in enumerate(self._decode(container, stream)):
                    rank = self._ranks.get(frame.pts)
                    if seek and place == 0 and (frame.is_corrupt or rank is None or rank > start):
                        break  # the file cannot be entered there
                    number = number + 1 if rank is None else max(rank, number + 1)
                    if number >= stop:
                        return
                    if number >= start:
                        yield number, frame
                    if number + 1 == stop:
                        return
                else:
                    return

    def sample(self, number: int) -> np.ndarray:
        """Return `(number, height, width, 3)`: frames from all over the video, or all of it if there are no more."""
        return np.stack([frame for _, frame in self.read_some(self.choose(number))])

    def choose(self, number: int) -> list[int]:
        """Return numbers of frames from all over the video, in order.

        With many key frames they are taken soon after them, else at even distances.
        """
        if number >= len(self):
            return list(range(len(self)))
        if len(self._keys) < MANY_KEYS:
            return np.unique(np.linspace(0, len(self) - 1, number).round().astype(int)).tolist()
        each = -(-number // len(self._keys))
        places = np.linspace(0, len(self._keys) - 1, -(-number // each)).round().astype(int)
        ends = [*self._keys, len(self)]
        chosen: list[int] = []
        for place in np.unique(places):
            step = max(1, min(APART, (ends[place + 1] - ends[place]) // each))
            chosen += range(ends[place], min(ends[place + 1], ends[place] + step * each), step)
        return chosen[:number]

    def read_some(self, numbers: list[int]) -> Iterator[tuple[int, np.ndarray]]:
        """Yield frames with their numbers, which are in order; what lies between two key frames is decoded at most."""
        ends = sorted({0, *self._keys, len(self)})
        for first, last in pairwise(ends):
            wanted = {number for number in numbers if first <= number < last}
            if wanted:
                frames = self._decoded(first, max(wanted) + 1)
                yield from ((number, self._pixels(frame)) for number, frame in frames if number in wanted)

    def _enterable(self, keys: list[int]) -> bool:
        """Say whether decoding may begin at a key frame; some files call frames so that need those before them."""
        later = [key for key in keys if key]
        if not later:
            return False
        with self._open() as (container, stream):
            container.seek(self._times[later[0]], stream=stream)
            frame = next(self._decode(container, stream), None)
            return frame is not None and not frame.is_corrupt and frame.pts is not None

    def _decode(self, container: Any, stream: Any) -> Iterator[Any]:
        """Yield frames; a packet that cannot be decoded has none, and what cannot be read ends the file."""
        av = import_extra("av", "pose", f"reading {self.path.name}")
        try:
            for packet in container.demux(stream):
                try:
                    yield from packet.decode()
                except av.FFmpegError as error:
                    self._warn_of_damage(error)
        except av.FFmpegError as error:
            self._warn_of_damage(error)

    def _warn_of_damage(self, error: Exception) -> None:
        if not self._damaged:
            log.warning("%s is damaged, frames that cannot be decoded are missing: %s", self.path, first_line(error))
        self._damaged = True

    def _pixels(self, frame: Any) -> np.ndarray:
        pixels = frame.to_ndarray(format="rgb24")
        if pixels.shape[:2] != self._stored:
            raise HapteraError(
                f"{self.path} has a frame of {pixels.shape[1]} x {pixels.shape[0]} among those of {self._stored[1]} x "
                f"{self._stored[0]} (width x height)"
            )
        transposed, across, down = self._turn
        if self._turn == UNTURNED:
            return pixels
        pixels = pixels.swapaxes(0, 1) if transposed else pixels
        return np.ascontiguousarray(pixels[:: -1 if down else 1, :: -1 if across else 1])

    def _open(self) -> "_Opened":
        return _Opened(self.path)


def _turn(frame: Any) -> tuple[bool, bool, bool]:
    """Return how a frame is shown: whether x and y are exchanged, then whether x and y run backwards.

    The display matrix has a, b, u, c, d, v, x, y, w; a pixel at (x, y) is shown at (a x + c y, b x + d y).
    """
    for entry in frame.side_data:
        if entry.type.name == "DISPLAYMATRIX":
            a, b, _, c, d, *_ = np.frombuffer(bytes(entry), np.int32).tolist()
            if a and d and not b and not c:
                return False, a < 0, d < 0
            if b and c and not a and not d:
                return True, c < 0, b < 0
    return UNTURNED


def _promised(container: Any, stream: Any) -> float:
    """Return how many frames a header says there are, or lets one expect; 0 where it says nothing.

    The length of the container is that of its longest stream, so it says something only of pictures that are alone.
    """
    if found := stream.frames or _lasting(stream):
        return float(found)
    alone = len(container.streams) == 1 and container.duration
    return round(container.duration / MICROSECONDS * float(stream.average_rate or 0)) if alone else 0.0


def _lasting(stream: Any) -> float:
    """Return how many frames a stream has by its length; 0 where that is not said."""
    length = float(stream.duration * stream.time_base) if stream.duration and stream.time_base else 0.0
    return round(length * float(stream.average_rate or 0))


class _Opened:
    """A container and its first stream of pictures, closed at the end."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __enter__(self) -> tuple[Any, Any]:
        av = import_extra("av", "pose", f"reading {self.path.name}")
        try:
            self.container = av.open(str(self.path))
        except (av.FFmpegError, OSError, ValueError) as error:
            raise HapteraError(f"cannot read the video {self.path}: {first_line(error)}") from error
        if not self.container.streams.video:
            self.container.close()
            raise HapteraError(f"{self.path} has no pictures in it; a video was expected")
        stream = self.container.streams.video[0]
        stream.thread_type = "AUTO"
        return self.container, stream

    def __exit__(self, *exception: Any) -> None:
        self.container.close()


def write_video(path: Path, frames: Iterable[np.ndarray], rate: Fraction) -> int:
    """Write frames `(height, width, 3)`, uint8, all of one size, as an .mp4, whole or not at all; return how many.

    Sides that are odd lose their last row or column, as the format wants it.
    """
    if path.suffix.lower() != ".mp4":
        raise HapteraError(f"cannot write a video to {path}; a name ending in .mp4 was expected")
    av = import_extra("av", "pose", f"writing {path.name}")
    codec = next((name for name in CODECS if name in av.codecs_available), CODECS[-1])
    number = 0
    with whole(path) as file, av.open(file, "w", format="mp4") as container:
        stream = None
        for pixels in frames:
            height, width = (side - side % 2 for side in pixels.shape[:2])
            if stream is None:
                stream = container.add_stream(codec, rate=rate)
                stream.height, stream.width, stream.pix_fmt = height, width, "yuv420p"
            picture = av.VideoFrame.from_ndarray(np.ascontiguousarray(pixels[:height, :width]), format="rgb24")
            container.mux(stream.encode(picture))
            number += 1
        if stream is None:
            raise HapteraError(f"there are no frames to write to {path}")
        container.mux(stream.encode())
    return number
