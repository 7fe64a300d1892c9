"""WebDataset: images and labels in tar files, a sample being all members of one name up to its first dot.

`00012.jpg` with `00012.cls`, or `00012.input.jpg` with `00012.output.cls` as in the published shards of CCC: the image
is the member with the suffix of an image, the label that in `.cls`, `.cls.txt`, `.index` or `.label`, or the key
`label` of a `.json`. The headers are read once; a batch reads the bytes of its own images, from any place, so order
and workers cost nothing. Compressed tars cannot be read from any place and are refused.
"""

import json
import logging
import tarfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from haptera.data.decode import Resize
from haptera.data.encoded import EncodedData
from haptera.data.folder import SUFFIXES, file_digest
from haptera.errors import HapteraError
from haptera.files.fingerprint import fingerprint

log = logging.getLogger("haptera")

LABEL_SUFFIXES = (".cls", ".cls.txt", ".index", ".label", ".target")
COMPRESSED = (".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".tar.zst")


@dataclass
class _Sample:
    """What the members of one name hold: where the image is, and the label."""

    name: str
    shard: int
    start: int = -1
    size: int = 0
    label: int | None = None
    others: list[str] = field(default_factory=list)


class TarData(EncodedData):
    """Images in the shards of a WebDataset.

    Args:
        paths: the tar files, in their order.
        resize: how images are brought to one size; without a size they must be of one.
        channels: 1 for grey; 3 or None for colour.
        name: what it is called in messages.
    """

    def __init__(
        self, paths: Iterable[Path], resize: Resize | None = None, channels: int | None = None, name: str | None = None
    ) -> None:
        super().__init__(resize, channels)
        self._paths = [Path(path) for path in paths]
        if packed := next((path for path in self._paths if path.name.endswith(COMPRESSED)), None):
            raise HapteraError(f"{packed} is compressed; unpack it to a plain .tar, which can be read from any place")
        self.name = name or self._paths[0].stem
        samples = [sample for shard, path in enumerate(self._paths) for sample in _list_samples(path, shard)]
        if not samples:
            raise HapteraError(
                f"no images in {self._paths[0]}: members that end in {', '.join(SUFFIXES)} were expected"
            )
        self._names = [sample.name for sample in samples]
        self._spans = np.array([(sample.shard, sample.start, sample.size) for sample in samples], np.int64)
        self.rows = np.arange(len(samples))
        self.targets = _read_targets(samples, self._paths)
        digests = [file_digest(path) for path in self._paths]
        self._fingerprint = fingerprint("tar", digests, self._resize, self._channels)
        self._prepare()

    def fingerprint(self) -> str:
        """Return the fingerprint of every shard's name, size and time of change, and of the settings."""
        return self._fingerprint

    def _source(self, position: int) -> bytes:
        shard, start, size = self._spans[position].tolist()
        try:
            with open(self._paths[shard], "rb") as file:
                file.seek(start)
                found = file.read(size)
        except OSError as error:
            raise HapteraError(f"cannot read {self._paths[shard]}: {error.strerror}") from error
        if len(found) < size:
            raise HapteraError(
                f"{self._place(position)} ends after {len(found)} of {size} bytes: the file is cut short"
            )
        return found

    def _place(self, position: int) -> str:
        return f"{self._names[position]} of {self._paths[self._spans[position, 0]]}"


def _list_samples(path: Path, shard: int) -> list[_Sample]:
    """Return the samples of a shard that have an image, in order."""
    samples: dict[str, _Sample] = {}
    try:
        with tarfile.open(path, "r:") as tar:
            for member in tar:
                if member.isfile() and not Path(member.name).name.startswith("."):
                    _add(samples, tar, member, shard, path)
            tar.fileobj.seek(tar.offset)
            after = tar.fileobj.read(tarfile.BLOCKSIZE)
    except (tarfile.TarError, OSError, EOFError) as error:
        raise HapteraError(f"cannot read {path} as a tar file: {error}") from error
    if after.strip(b"\0") or len(after) % tarfile.BLOCKSIZE:  # else the zeros at the end, or the end itself
        raise HapteraError(f"{path} is cut short: it ends within a member")
    found = [sample for sample in samples.values() if sample.start >= 0]
    if len(found) < len(samples):
        log.warning(
            "%s: %d of %d samples have no image; they are left out", path, len(samples) - len(found), len(samples)
        )
    return found


def _add(samples: dict[str, _Sample], tar: tarfile.TarFile, member: tarfile.TarInfo, shard: int, path: Path) -> None:
    folder, _, base = member.name.rpartition("/")
    stem, dot, suffix = base.partition(".")
    key, suffix = f"{folder}/{stem}", (dot + suffix).lower()
    sample = samples.setdefault(key, _Sample(f"{folder}/{stem}".lstrip("/"), shard))
    if suffix.endswith(SUFFIXES):
        if sample.start >= 0:
            raise HapteraError(f"{path}: the sample {sample.name} has two images; one was expected")
        sample.start, sample.size = member.offset_data, member.size
    elif suffix.endswith(LABEL_SUFFIXES) or suffix.endswith(".json"):
        label = _read_label(tar, member, suffix, path)
        sample.label = sample.label if label is None else label


def _read_label(tar: tarfile.TarFile, member: tarfile.TarInfo, suffix: str, path: Path) -> int | None:
    """Return the label in a member; None for a JSON without one."""
    file = tar.extractfile(member)
    text = (file.read(2**20) if file else b"").decode("utf-8", "replace").strip()
    if suffix.endswith(".json"):
        try:
            content = json.loads(text)
        except ValueError as error:
            raise HapteraError(f"{path}: {member.name} is not JSON: {error}") from error
        known = (
            [content[key] for key in ("label", "cls", "target") if key in content] if isinstance(content, dict) else []
        )
        text = str(known[0]) if known else ""
        if not known:
            return None
    if not (text.isascii() and text.isdigit()):
        raise HapteraError(f"{path}: {member.name} holds {text[:40]!r}; the number of a class was expected")
    return int(text)


def _read_targets(samples: list[_Sample], paths: list[Path]) -> np.ndarray | None:
    """Return `(samples,)`, or None where none has a label; some is an error."""
    missing = [sample for sample in samples if sample.label is None]
    if len(missing) == len(samples):
        return None
    if missing:
        raise HapteraError(
            f"{paths[missing[0].shard]}: the sample {missing[0].name} has an image and no label, as have "
            f"{len(missing)} of {len(samples)}; labels for all of them or for none were expected"
        )
    return np.array([sample.label for sample in samples], np.int64)
