"""What does a population encode? An embedding with its controls, and the same by hand, on simulated cells.

Run it as `python examples/embedding_with_controls.py [FOLDER]`. It writes `cells.npz`, for which
`haptera embed cells.npz --signal spikes --label heading --out cells` does the same from the command line.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np

import haptera
from haptera.analyses.embedding.decoding import Part, decode_knn
from haptera.analyses.embedding.plan import Plan
from haptera.contrastive.estimator import ContrastiveEmbedding
from haptera.recordings.reading import Source

SETTINGS = {"model_architecture": "offset10-model", "output_dimension": 3, "time_offsets": 10, "max_iterations": 100,
            "learning_rate": 1e-3, "batch_size": 256}  # fmt: skip


def simulate(path: Path) -> None:
    """A head that turns, and twelve units that each fire around a direction of their own."""
    random = np.random.default_rng(0)
    heading = np.cumsum(random.normal(0, 0.15, 2000)) % (2 * np.pi)
    preferred = np.arange(12) * 2 * np.pi / 12
    spikes = random.poisson(0.1 + 3 * np.exp(3 * (np.cos(heading[:, None] - preferred) - 1)))
    np.savez(path, spikes=spikes, heading=heading, time=np.arange(2000) * 0.1)


def main(folder: Path) -> None:
    """All controls in one call; then a fit and a decoder by hand."""
    simulate(folder / "cells.npz")
    source = Source(folder / "cells.npz", "spikes", ["heading"])
    plan = Plan(labels=("heading",), shuffles=1, baselines=("pca",), settings=SETTINGS)
    embedding = haptera.embed(source, plan, out=folder / "cells")
    print(embedding.summary())
    print(f"page: {embedding.save(folder / 'cells')['report']}")

    recording = source.read()
    rest, test = recording.split(0.3)
    train, validation = rest.split(0.2)
    model = ContrastiveEmbedding(**SETTINGS, random_state=0).fit(train.signal(), *train.targets("heading"))
    parts = [Part(model.transform(part.signal()), part.label("heading")) for part in (train, validation, test)]
    decoding = decode_knn(*parts)
    print(f"by hand: {decoding.scores['median_error']:.1f} degrees with {decoding.setting:.0f} neighbours")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp(prefix="haptera-")))
