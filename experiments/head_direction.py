"""Head direction of a mouse, read from embeddings of 15 units, beside the decoders that everybody knows.

    python experiments/head_direction.py [FOLDER] [--tiny]

`head-direction.nwb` is read from $HAPTERA_DATA, by default ~/.cache/haptera. Spikes in bins of 100 ms; encoders learn
from the first 56 % of the bins, decoders are chosen on the next 14 %, everything is scored on the last 30 %. Fits by
label and by time alone, three seeds each, beside both kinds of shuffle, ridge, nearest neighbours and a Bayesian
decoder on the signal itself, and the baselines that are installed. It takes about five minutes on one core. It writes
`head_direction.csv`, a row for each number, and `head_direction.txt` into FOLDER, by default `docs/evidence/results`.
"""

import os
import sys
from pathlib import Path

import pandas as pd
import torch

from haptera.analyses.embedding.analysis import Embedding, embed
from haptera.analyses.embedding.comparison import summarise
from haptera.analyses.embedding.plan import Plan
from haptera.recordings.reading import read_recording

DATA = Path(os.environ.get("HAPTERA_DATA", Path.home() / ".cache" / "haptera"))
FILE, LABEL = "head-direction.nwb", "head_direction"
TINY = "--tiny" in sys.argv


def analyses() -> dict[str, Embedding]:
    recording = read_recording(DATA / FILE, "spikes", [LABEL], bin=0.1)
    tiny = {"seeds": 1, "shuffles": 1, "baselines": ("pca",), "settings": {"max_iterations": 60}} if TINY else {}
    by_label = Plan(labels=(LABEL,), **tiny)
    by_time = Plan(labels=(LABEL,), mode="time", **(tiny | {"baselines": (), "topology": False}))
    return {"label": embed(recording, by_label), "time": embed(recording, by_time)}


def summary(found: dict[str, Embedding]) -> str:
    lines = [found["label"].headline(), ""]
    for mode, analysis in found.items():
        lines.append(f"by {mode}")
        lines += [f"  {finding.word:<12}{finding.sentence}" for finding in analysis.findings()]
        lines.append("")
    lines.append("median error in degrees on the last 30 %: mean, least and largest over seeds")
    for mode, analysis in found.items():
        table = summarise(analysis.decoding)
        rows = table[(table["measure"] == "median_error") & ((mode == "label") | table["what"].isin(CONTRASTIVE))]
        for row in rows.itertuples():
            name = f"{row.what}, {row.decoder}" if row.what != row.decoder else row.what
            ends = f"  {row.low:.1f} to {row.high:.1f}" if row.seeds > 1 else ""
            lines.append(f"  by {mode:<8}{name:<34}{row.value:6.1f}{ends}")
    return "\n".join(lines) + "\n"


CONTRASTIVE = ("embedding", "shuffled decoder", "shuffled training")


def main(folder: Path) -> None:
    torch.set_num_threads(1)
    found = analyses()
    folder.mkdir(parents=True, exist_ok=True)
    table = pd.concat([each.table().assign(mode=mode) for mode, each in found.items()], ignore_index=True)
    table.to_csv(folder / "head_direction.csv", index=False, float_format="%.5g")
    text = summary(found)
    (folder / "head_direction.txt").write_text(text, encoding="utf-8")
    print(text, end="")


if __name__ == "__main__":
    if not (DATA / FILE).is_file():
        sys.exit(f"there is no {DATA / FILE}; put it there, or say in HAPTERA_DATA where it is")
    named = [word for word in sys.argv[1:] if not word.startswith("--")]
    main(Path(named[0]) if named else Path(__file__).parents[1] / "docs" / "evidence" / "results")
