"""Folders of tables, as on the Hugging Face hub and as `datasets` saves them.

A file is `config/split-00000-of-00004.parquet`, `data/split-00000-of-00004.parquet`, `config/split/0000.parquet` or
`split.parquet`. Where every split ends in a severity, 1 to 5, each config is a corruption. Else a config has one split
that is read, `test` before `validation` before any other that stands alone, and several configs are domains. A folder
that `datasets` saved has `state.json` with the names of its Arrow files, in a folder for each split if there are
several.
"""

import logging
import os
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from haptera.data.arrow import ArrowData
from haptera.data.base import CorruptedImages, CorruptedPart, Data
from haptera.data.decode import Resize
from haptera.data.groups import group_parts
from haptera.errors import HapteraError
from haptera.files.json import read_json

log = logging.getLogger("haptera")

SHARD = re.compile(r"(?P<split>.+?)-\d+-of-\d+(-.*)?")
SEVERITY = re.compile(r"(?:.*[^0-9])?([1-5])")
PREFERRED = ("test", "validation", "val", "valid")
SAVED, SPLITS = "state.json", "dataset_dict.json"

Groups = Mapping[str, Mapping[str, Sequence[Path]]]
"""Config -> split -> files."""


def find_tables(root: Path) -> Groups:
    """Return the tables in a folder; empty if it has none."""
    if (root / SPLITS).is_file() or (root / SAVED).is_file():
        folders = [path.parent for path in sorted(root.glob(f"*/{SAVED}"))] or [root]
        return {"": {folder.name: _saved_files(folder) for folder in folders}}
    found: dict[str, dict[str, list[Path]]] = defaultdict(lambda: defaultdict(list))
    walk = (Path(folder, name) for folder, _, names in os.walk(root) for name in names if name.endswith(".parquet"))
    for path in sorted(walk):
        inside = [part for part in path.relative_to(root).parts[:-1] if part != "data"]
        if any(part.startswith(".") for part in path.relative_to(root).parts):
            continue
        match = SHARD.fullmatch(path.stem)
        split = match["split"] if match else path.stem
        if split.isdigit() and len(split) > 1 and inside:  # config/split/0000.parquet
            split = inside.pop()
        found["/".join(inside)][split].append(path)
    return found


def open_tables(
    root: Path, groups: Groups, resize: Resize | None = None, channels: int | None = None
) -> Data | CorruptedImages:
    """Return the data of a folder of tables: one data set, or a part for each corruption and severity, or domain."""
    severities = [SEVERITY.fullmatch(split) for splits in groups.values() for split in splits]
    if len(severities) > 1 and all(severities):
        parts = [
            CorruptedPart(config or root.name, float(SEVERITY.fullmatch(split)[1]), data)  # type: ignore[index]
            for config, splits in sorted(groups.items())
            for split, files in sorted(splits.items())
            for data in [ArrowData(files, resize, channels, "/".join(filter(None, (root.name, config, split))))]
        ]
        return group_parts(root.name, parts, paired=True)
    chosen = {config: _choose(root, config, splits) for config, splits in sorted(groups.items())}
    if len(chosen) == 1:
        return ArrowData(next(iter(chosen.values())), resize, channels, root.name)
    parts = [
        CorruptedPart(config, float("nan"), ArrowData(files, resize, channels, f"{root.name}/{config}"))
        for config, files in chosen.items()
    ]
    return group_parts(root.name, parts, paired=False)


def _choose(root: Path, config: str, splits: Mapping[str, Sequence[Path]]) -> Sequence[Path]:
    """Return the files of the split that is read."""
    if len(splits) == 1:
        return next(iter(splits.values()))
    preferred = next((split for split in PREFERRED if split in splits), None)
    if preferred is None:
        raise HapteraError(
            f"{root / config} holds the splits {', '.join(sorted(splits))}; give the files of one, such as "
            f"'{next(iter(splits.values()))[0].parent}/{min(splits)}*'"
        )
    log.info("%s: of the splits %s, %s is read", root / config, ", ".join(sorted(splits)), preferred)
    return splits[preferred]


def _saved_files(folder: Path) -> list[Path]:
    """Return the Arrow files that `datasets` saved in a folder."""
    state = read_json(folder / SAVED)
    listed = state.get("_data_files") if isinstance(state, dict) else None
    names = [str(entry.get("filename")) for entry in listed or () if isinstance(entry, dict)]
    if not names or any(Path(name).name != name or not (folder / name).is_file() for name in names):
        raise HapteraError(f"{folder / SAVED} does not list files of a data set; `save_to_disk` of datasets writes it")
    if isinstance(state, dict) and state.get("_indices_files"):
        raise HapteraError(f"{folder} holds a selection of rows; call flatten_indices() before save_to_disk()")
    return [folder / name for name in names]
