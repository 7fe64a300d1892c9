"""Do embeddings find latents that are known, and do sessions with different neurons agree?

    python experiments/synthetic_latents.py [FOLDER] [--quick] [--tiny]

1. The synthetic data of chapter 7, five data sets of 15,000 samples: held-out R² of a linear map from the embedding to
   the latent, beside a network that is taught the latent (the most that the data allows), PCA of counts and of their
   square roots, t-SNE and, where it is installed, UMAP. Then one data set of every other kind of noise.
2. Three sessions with different neurons and the same law of the latent: consistency across sessions, of encoders that
   were trained together and of encoders trained alone.
3. A new session: the error of decoding after a fit from scratch, and after adapting in a fifth of the steps.

It takes about half an hour on one core, most of it t-SNE and UMAP. It writes `synthetic_latents.csv`, a row for each
number, and `synthetic_latents.txt` into FOLDER, by default `docs/evidence/results`. Everything is scored on samples
that nothing was fitted on; t-SNE and UMAP, which have no map for new samples, see them without labels. `--quick` is
PCA, factor analysis and the variational autoencoder on the five Poisson sets alone, a minute, into
`synthetic_baselines.csv` and `.txt`.
"""

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch import nn

from haptera.analyses.embedding.baselines import available_baselines, baseline
from haptera.analyses.embedding.consistency import consistency
from haptera.analyses.embedding.decoding import Part, decode_knn
from haptera.contrastive.estimator import ContrastiveEmbedding
from haptera.recordings.label import Label
from haptera.recordings.synthetic import NOISES, Synthetic, sessions, synthetic

TINY, QUICK = "--tiny" in sys.argv, "--quick" in sys.argv
SAMPLES, NEURONS, SETS = (1500, 40, 2) if TINY else (15_000, 100, 5)
TRAIN = 0.8
STEPS = 100 if TINY else 1000
SETTINGS = {
    "model_architecture": "offset1-model-mse", "output_dimension": 2, "conditional": "delta", "delta": 0.1,
    "distance": "euclidean", "batch_size": 512, "learning_rate": 3e-4, "max_iterations": STEPS,
}  # fmt: skip
SESSION_STEPS = 100 if TINY else 500
SESSION_SETTINGS = {
    "model_architecture": "offset1-model", "output_dimension": 3, "time_offsets": 10, "batch_size": 512,
    "learning_rate": 1e-3, "max_iterations": SESSION_STEPS,
}  # fmt: skip
Rows = list[dict[str, object]]


def held_out_r2(embedding: np.ndarray, latent: np.ndarray) -> float:
    """Of an affine map to the latent, fitted on the first part and scored on the rest."""
    cut = int(TRAIN * len(latent))
    inputs = np.column_stack([embedding, np.ones(len(embedding))])
    weights = np.linalg.lstsq(inputs[:cut], latent[:cut], rcond=None)[0]
    left, spread = latent[cut:] - inputs[cut:] @ weights, latent[cut:] - latent[cut:].mean(0)
    return float(1 - ((left**2).sum(0) / (spread**2).sum(0)).mean())


def taught(data: Synthetic, seed: int) -> np.ndarray:
    """A network of the encoder's size that is told the latent; the best of its epochs on a validation part."""
    torch.manual_seed(seed)
    cut = int(TRAIN * len(data.latent))
    learn = int(0.85 * cut)
    inputs, targets = (torch.from_numpy(np.asarray(each, np.float32)) for each in (data.signal, data.latent))
    inputs = (inputs - inputs[:learn].mean(0)) / inputs[:learn].std(0).clamp(min=1e-6)
    mean, spread = targets[:learn].mean(0), targets[:learn].std(0)
    wide = 32 if TINY else 128
    model = nn.Sequential(
        nn.Linear(inputs.shape[1], wide), nn.GELU(), nn.Linear(wide, wide), nn.GELU(), nn.Linear(wide, 2)
    )
    optimiser = torch.optim.Adam(model.parameters(), 1e-3, weight_decay=1e-4)
    best, said = np.inf, np.empty(0)
    for _ in range(4 if TINY else 25):
        for rows in torch.randperm(learn).split(256):
            loss = (model(inputs[rows]) - (targets[rows] - mean) / spread).square().mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        with torch.no_grad():
            outputs = model(inputs) * spread + mean
        error = float((outputs[learn:cut] - targets[learn:cut]).square().mean())
        if error < best:
            best, said = error, outputs.numpy()
    return said


def contrastive(data: Synthetic, seed: int) -> np.ndarray:
    cut = int(TRAIN * len(data.label))
    model = ContrastiveEmbedding(**SETTINGS, random_state=seed).fit(data.signal[:cut], data.label[:cut])
    return np.asarray(model.transform(data.signal))


def latents() -> Rows:
    methods: dict[str, Callable[[Synthetic, int], np.ndarray]] = {"supervised": taught, "contrastive": contrastive}
    cut = int(TRAIN * SAMPLES)
    for name in available_baselines():
        methods[name] = lambda data, seed, name=name: baseline(name, data.signal[:cut], data.signal, 2, seed)
    if QUICK:
        methods = {name: methods[name] for name in ("pca", "factors", "vae")}
    methods["pca of roots"] = lambda data, seed: baseline("pca", *_roots(data, cut), 2, seed)
    rows: Rows = []
    for noise in ("poisson", *(other for other in NOISES if other != "poisson" and not QUICK)):
        for seed in range(SETS if noise == "poisson" else 1):
            data = synthetic(SAMPLES, NEURONS, noise, seed)
            for method, embed in methods.items():
                if noise != "poisson" and method in ("tsne", "umap"):
                    continue
                value = held_out_r2(embed(data, seed), data.latent)
                rows.append({"part": "latent", "noise": noise, "method": method, "seed": seed, "value": value})
                print(f"{noise} {seed} {method}: {value:.3f}", file=sys.stderr, flush=True)
    return rows


def _roots(data: Synthetic, cut: int) -> tuple[np.ndarray, np.ndarray]:
    roots = np.sqrt(data.signal)
    return roots[:cut], roots


def multi_session() -> Rows:
    rows: Rows = []
    for seed in range(1 if TINY else 3):
        made = sessions((20, 30, 40) if TINY else (60, 80, 100), 800 if TINY else 4000, seed)
        signals, labels = [each.signal for each in made], [each.label for each in made]
        together = ContrastiveEmbedding(**SESSION_SETTINGS, random_state=seed).fit(signals, labels)
        joint = together.transform(signals)
        alone = [
            ContrastiveEmbedding(**SESSION_SETTINGS, random_state=10 * seed + place).fit(x, c).transform(x)
            for place, (x, c) in enumerate(zip(signals, labels, strict=True))
        ]
        known = {str(place): [Label.of(c)] for place, c in enumerate(labels)}
        for method, embeddings in (("together", joint), ("alone", alone)):
            frame = consistency({str(place): each for place, each in enumerate(embeddings)}, known)
            rows.append({"part": "sessions", "method": method, "seed": seed, "value": frame["value"].mean()})
        rows += adaptation(together, seed)
    return rows


def adaptation(together: ContrastiveEmbedding, seed: int) -> Rows:
    """A session that the model has not seen: from scratch, and adapted in a fifth of the steps."""
    new = sessions((25 if TINY else 70,), 800 if TINY else 4000, seed + 100)[0]
    cut, chosen = int(0.7 * len(new.label)), int(0.55 * len(new.label))
    fifth = SESSION_STEPS // 5
    scratch = ContrastiveEmbedding(**SESSION_SETTINGS, random_state=seed).fit(new.signal[:chosen], new.label[:chosen])
    short = SESSION_SETTINGS | {"max_iterations": fifth}
    early = ContrastiveEmbedding(**short, random_state=seed).fit(new.signal[:chosen], new.label[:chosen])
    together.set_params(max_adapt_iterations=fifth)
    adapted = together.fit(new.signal[:chosen], new.label[:chosen], adapt=True, session_id=0)
    rows: Rows = []
    named = (("from scratch", scratch), ("from scratch, a fifth of the steps", early), ("adapted, a fifth", adapted))
    for method, model in named:
        embedding = model.transform(new.signal)
        parts = [Part(embedding[a:b], Label.of(new.label[a:b])) for a, b in ((0, chosen), (chosen, cut), (cut, None))]
        error = decode_knn(*parts).scores["median_error"]
        rows.append({"part": "new session", "method": method, "seed": seed, "value": error})
    return rows


def summary(frame: pd.DataFrame) -> str:
    titles = {
        "latent": "held-out R² of the latent",
        "sessions": "consistency across sessions with different neurons (R², bins of the label)",
        "new session": "a new session: median error of decoding the label (0 to 2π)",
    }
    lines = []
    for part, title in titles.items():
        rows = frame[frame["part"] == part].assign(noise=lambda rows: rows["noise"].fillna(""))
        lines += [title] if len(rows) else []
        for (noise, method), some in rows.groupby(["noise", "method"], sort=False):
            values = some["value"]
            ends = f"  ({values.min():.3f} to {values.max():.3f}, {len(values)} sets)" if len(values) > 1 else ""
            lines.append(f"  {noise:<12}{method:<36}{values.mean():.3f}{ends}")
        lines += [""] if len(rows) else []
    return "\n".join(lines).rstrip() + "\n"


def main(folder: Path) -> None:
    torch.set_num_threads(1)
    frame = pd.DataFrame(latents() + ([] if QUICK else multi_session()))
    folder.mkdir(parents=True, exist_ok=True)
    name = "synthetic_baselines" if QUICK else "synthetic_latents"
    frame.to_csv(folder / f"{name}.csv", index=False, float_format="%.5g")
    text = summary(frame)
    (folder / f"{name}.txt").write_text(text, encoding="utf-8")
    print(text, end="")


if __name__ == "__main__":
    named = [word for word in sys.argv[1:] if not word.startswith("--")]
    main(Path(named[0]) if named else Path(__file__).parents[1] / "docs" / "evidence" / "results")
