"""Calcium recordings that nothing was tuned on: formats, and embeddings by time alone.

    python experiments/calcium.py [FOLDER] [--tiny]

All `.nwb` files in the folder `calcium` of $HAPTERA_DATA, by default ~/.cache/haptera, with the defaults of `haptera
embed`: three seeds, three fits of samples in a random order, no labels, as the files have none. It takes about five
minutes of one core, and writes `calcium.txt` into FOLDER, by default `docs/evidence/results`.
"""

import os
import sys
from pathlib import Path

import torch

from haptera.analyses.embedding.analysis import embed
from haptera.analyses.embedding.plan import Plan
from haptera.recordings.reading import read_recording

DATA = Path(os.environ.get("HAPTERA_DATA", Path.home() / ".cache" / "haptera")) / "calcium"
TINY = "--tiny" in sys.argv


def report(path: Path) -> str:
    recording = read_recording(path)
    few = {"seeds": 2, "shuffles": 1, "settings": {"max_iterations": 20}} if TINY else {}
    found = embed(recording, Plan(baselines=(), topology=False, **few))
    lines = [path.name, f"  {'':<12}{found.headline()}"]
    lines += [f"  {'note':<12}{note}" for note in found.notes]
    lines += [f"  {one.word:<12}{one.sentence}" for one in found.findings() if one.sentence]
    return "\n".join(lines)


def main(folder: Path) -> None:
    torch.set_num_threads(1)
    folder.mkdir(parents=True, exist_ok=True)
    text = "\n\n".join(map(report, sorted(DATA.glob("*.nwb")))) + "\n"
    (folder / "calcium.txt").write_text(text, encoding="utf-8")
    print(text, end="")


if __name__ == "__main__":
    if not list(DATA.glob("*.nwb")):
        sys.exit(f"there is no .nwb file in {DATA}; put some there, or say in HAPTERA_DATA where its parent is")
    named = [word for word in sys.argv[1:] if not word.startswith("--")]
    main(Path(named[0]) if named else Path(__file__).parents[1] / "docs" / "evidence" / "results")
