"""The null of the text: a ring beside 500 fits of shuffled labels, and how long that takes.

    python experiments/topology_null.py [FOLDER] [--shuffles N] [--kept FOLDER] [--steps N]

A mouse's head direction (`head-direction.nwb` in $HAPTERA_DATA, by default ~/.cache/haptera) by label, as `haptera
embed --shuffles 500` does it: one fit of true labels, and as many of shuffled ones, each with a draw of points for the
topology. What is finished is kept in `--kept`, so that the same command goes on where it was stopped; the time is of
what was made in this run. It writes `topology_null.txt` into FOLDER, by default `docs/evidence/results`.
"""

import argparse
import os
import tempfile
import time
from pathlib import Path

import numpy as np
import torch

from haptera.analyses.embedding.analysis import embed
from haptera.analyses.embedding.plan import Plan
from haptera.analyses.embedding.topology import persistence
from haptera.recordings.reading import read_recording

DATA = Path(os.environ.get("HAPTERA_DATA", Path.home() / ".cache" / "haptera"))
FILE, LABEL = "head-direction.nwb", "head_direction"
FEW = (3, 10, 30, 100, 300)


def report(shuffles: int, kept: Path, steps: int) -> str:
    recording = read_recording(DATA / FILE, "spikes", [LABEL], bin=0.1)
    settings = {"max_iterations": steps}
    common = {"labels": (LABEL,), "seeds": 1, "baselines": (), "settings": settings}
    embed(recording, Plan(**common, shuffles=0, topology=False), out=kept, jobs=1, progress=False)
    done = len(list((kept / "fits").glob("shuffle-*")))
    begin = time.process_time()
    found = embed(recording, Plan(**common, shuffles=shuffles), out=kept, jobs=1, progress=False)
    seconds = time.process_time() - begin
    begin = time.process_time()
    persistence(found.embedding)
    shape = time.process_time() - begin
    made = shuffles - done
    lines = [
        f"{len(recording):,} samples, {steps} steps a fit; true labels: betti {found.betti}, longest ring "
        f"{found.persistence.longest(1):.2f} and hollow {found.persistence.longest(2):.2f} of the spread",
        f"topology of one embedding: {shape:.2f} s of one core",
        f"{made} shuffled fits, each read by decoders too, and their topology: {seconds / 60:.1f} min of one core, "
        f"{seconds / max(made, 1):.1f} s each; 500 would be {500 * seconds / max(made, 1) / 60:.0f} min",
        "",
        "shuffled fits   longest ring or hollow   the true ring over it",
    ]
    each = np.array([max(draw.longest(1), draw.longest(2)) for draw in found.null])
    longest = each.reshape(shuffles, -1).max(1)  # few fits have several draws of points each
    for count in [some for some in FEW if some < shuffles] + [shuffles]:
        top = longest[:count].max()
        lines.append(f"{count:13}{top:25.2f}{found.persistence.longest(1) / top:24.1f}")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", nargs="?", type=Path, default=Path(__file__).parents[1] / "docs/evidence/results")
    parser.add_argument("--shuffles", type=int, default=500)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--kept", type=Path)
    given = parser.parse_args()
    if not (DATA / FILE).is_file():
        raise SystemExit(f"there is no {DATA / FILE}; put it there, or say in HAPTERA_DATA where it is")
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        text = report(given.shuffles, given.kept or Path(folder), given.steps)
    given.folder.mkdir(parents=True, exist_ok=True)
    (given.folder / "topology_null.txt").write_text(text, encoding="utf-8")
    print(text, end="")


if __name__ == "__main__":
    main()
