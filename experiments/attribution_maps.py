"""Chapter 8 in small: which training and which method find the map from latents to inputs?

    python experiments/attribution_maps.py [FOLDER] [--tiny | --tables]

Recordings of 20,000 samples whose map is known (`haptera.analyses.identify.processes`): z1, with 2 or 4 latents,
reaches all inputs, z2, with 2, half of them. Five data sets of each. In the first setting z2 is observed (table 8.1),
in the second z1 is (table 8.2). Training is supervised, supervised contrastive or hybrid contrastive, each with and
without the Jacobian term; the map of z2 is then found by every method, and scored against the true one: area under the
ROC curve, with 95 % intervals by resampling data sets. R² is that of a linear map from the embedding to the observed
latents, on the last fifth of the samples, which no encoder saw. Last come the tests of appendix G, for observed z2: an
analysis of variance with all factors and interactions (table G.1), and Tukey's test of the best combination of method
and training (G.2), of method and term (G.3), and of all three, against the others. All methods are applied to the same
encoders, so that rows are not as independent as these tests take them to be; that is so in the source as well.

It takes about half an hour on one core and writes `attribution_maps.csv`, a row for each number, and
`attribution_maps.txt`, into FOLDER, by default `docs/evidence/results`. `--tables` writes the second again from the
first.
"""

import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch import nn

from haptera.analyses.attribution.maps import attribution_map, map_scores
from haptera.analyses.embedding.consistency import linear_r2
from haptera.analyses.identify.inversion import LatentEncoder
from haptera.analyses.identify.processes import Piecewise, piecewise
from haptera.contrastive.estimator import ContrastiveEmbedding
from haptera.contrastive.jacobian import JacobianTerm, squared_norms
from haptera.statistics.comparison import analyse_factors, compare_groups
from haptera.statistics.intervals import mean_of_units

TINY = "--tiny" in sys.argv
SAMPLES, SETS, STEPS = (2000, 2, 60) if TINY else (20_000, 5, 1200)
LATENTS = (4,) if TINY else (4, 6)
SECOND = 2
FIRST = 10
"""Of the data sets; settings were chosen while looking at data sets 0 to 5, which are therefore left out."""
BATCH, LEARNING_RATE, WEIGHT, HIDDEN = 512, 1e-3, 0.1, 128
SCALE = 2.4
"""Of the encoder at first: −‖x − y‖² of latents times it is the logarithm of how the walk steps, 1 / (√2 · .3)."""
HELD = 0.2
ATTRIBUTED = 200 if TINY else 1000
"""Samples over which a map is summed."""
METHODS = {
    "inverted Jacobian": ("inverted_jacobian", {}),
    "gradient": ("gradient", {}),
    "integrated gradients": ("integrated_gradients", {"steps": 20}),
    "feature ablation": ("feature_ablation", {"baseline": "zero"}),
    "Shapley, shuffled": ("shapley", {"baseline": "shuffled", "orders": 4}),
    "Shapley, zeros": ("shapley", {"baseline": "zero", "orders": 4}),
}
TRAININGS = {"z2 observed": ("supervised", "supervised contrastive", "hybrid contrastive"),
             "z2 latent": ("hybrid contrastive",)}  # fmt: skip


def new_encoder(channels: int, hidden: int, dimensions: int) -> LatentEncoder:
    """Three GELU layers and a scaled tanh."""
    return LatentEncoder(channels, [hidden] * 3, dimensions, "tanh", SCALE, nn.GELU())


def supervised(signal: np.ndarray, targets: np.ndarray, weight: float, seed: int) -> nn.Module:
    """Squared error, with the same term and the same ramp."""
    torch.manual_seed(seed)
    encoder = new_encoder(signal.shape[1], HIDDEN, targets.shape[1])
    term = JacobianTerm.of(weight, None, False, STEPS)
    optimiser = torch.optim.Adam(encoder.parameters(), LEARNING_RATE)
    x, y = torch.from_numpy(signal), torch.from_numpy(targets.astype(np.float32))
    for step in range(1, STEPS + 1):
        rows = torch.randint(len(x), (BATCH,))
        loss = (encoder(x[rows]) - y[rows]).square().mean()
        if now := term.at(step):
            loss = loss + now * squared_norms(encoder, x[rows][..., None]).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return encoder.eval()


def contrastive(signal: np.ndarray, targets: np.ndarray, dimensions: int, hybrid: object, weight: float, seed: int):
    model = ContrastiveEmbedding(
        new_encoder, output_dimension=dimensions, num_hidden_units=HIDDEN, conditional="time_delta", hybrid=hybrid,
        distance="euclidean", positive_in_denominator=True, batch_size=BATCH, learning_rate=LEARNING_RATE,
        max_iterations=STEPS, jacobian_weight=weight, random_state=seed,
    )  # fmt: skip
    return model.fit(signal, targets).encoders_[0]


def trained(
    data: Piecewise, setting: str, training: str, weight: float, seed: int
) -> tuple[nn.Module, list[int], list[int]]:
    """An encoder, its outputs for z2, and its outputs for what is observed."""
    cut = round((1 - HELD) * len(data.signal))
    observed = data.second if setting == "z2 observed" else data.first
    signal, targets = data.signal[:cut], data.latents[:cut, observed]
    places = list(range(len(observed)))
    if training == "supervised":
        return supervised(signal, targets, weight, seed), places, places
    if training == "supervised contrastive":
        return contrastive(signal, targets, len(observed), False, weight, seed), places, places
    count = data.latents.shape[1]
    return contrastive(signal, targets, count, {"behaviour": observed}, weight, seed), data.second, observed


def scored(data: Piecewise, setting: str, training: str, weight: float, seed: int) -> list[dict[str, object]]:
    """One encoder, every method."""
    begin = time.process_time()
    encoder, second, observed = trained(data, setting, training, weight, seed)
    seconds = time.process_time() - begin
    truth = data.latents[:, data.second if setting == "z2 observed" else data.first]
    held = slice(round((1 - HELD) * len(data.signal)), None)
    with torch.no_grad():
        points = encoder(torch.from_numpy(data.signal[held])).numpy()[:, observed]
    known = {"setting": setting, "training": training, "term": "regularised" if weight else "none", "seed": seed}
    known |= {"latents": data.latents.shape[1]}
    rows = [{**known, "measure": "r2", "method": "", "value": linear_r2(points, truth[held])}]
    rows.append({**known, "measure": "seconds", "method": "", "value": seconds})
    chosen = np.random.default_rng(seed).choice(len(data.signal), ATTRIBUTED, replace=False)
    for name, (method, options) in METHODS.items():
        found = attribution_map(encoder, data.signal[chosen], method, seed=seed, **options)
        scores = map_scores(found[second], data.map[data.second])
        rows.append({**known, "measure": "auroc", "method": name, "value": scores.auroc})
        rows.append({**known, "measure": "average_precision", "method": name, "value": scores.average_precision})
    best = next(row["value"] for row in rows if row["method"] == "inverted Jacobian")
    print(f"{known}: J+ {best:.3f}, R² {rows[0]['value']:.3f}, {seconds:.0f} s", file=sys.stderr, flush=True)
    return rows


def interval(values: np.ndarray) -> str:
    """The mean and its 95 % interval over data sets (Student's t on the log odds), in percent."""
    found = mean_of_units(values, "share")
    return f"{100 * found.value:.1f} ({100 * found.low:.1f}-{100 * found.high:.1f})"


def tables(frame: pd.DataFrame) -> str:
    """Methods by training and term, for each setting, then the tests."""
    lines = []
    for setting, trainings in TRAININGS.items():
        rows = frame[frame["setting"] == setting]
        columns = [(training, term) for training in trainings for term in ("none", "regularised")]
        lines += [f"auROC in percent for z2, {setting}; mean over {rows['seed'].nunique()} data sets with "
                  f"{', '.join(map(str, rows['latents'].unique()))} latents, 95 % interval", ""]  # fmt: skip
        shown = pd.DataFrame(index=[*METHODS, "R² of the observed"])
        for training, term in columns:
            here = rows[(rows["training"] == training) & (rows["term"] == term)]
            cells = [
                interval(here[(here["measure"] == "auroc") & (here["method"] == m)]["value"].to_numpy())
                for m in METHODS
            ]
            cells.append(interval(here[here["measure"] == "r2"]["value"].to_numpy()))
            shown[training, term] = cells
        shown.columns = pd.MultiIndex.from_tuples(columns)
        lines += [shown.to_string(), ""]
    auroc = frame[(frame["measure"] == "auroc") & (frame["setting"] == "z2 observed")]
    percent = auroc.assign(value=100 * auroc["value"])
    factors = [name for name in ("method", "training", "term", "latents") if percent[name].nunique() > 1]
    lines += ["analysis of variance of the auROC in percent, z2 observed (as table G.1)", ""]
    lines += [shown_tests(analyse_factors(percent, "value", factors)), ""]
    best = {"method": "inverted Jacobian", "training": "hybrid contrastive", "term": "regularised"}
    for table, chosen in (("G.2", ["method", "training"]), ("G.3", ["method", "term"])):
        name = ", ".join(best[factor] for factor in chosen)
        lines += [f"Tukey's test: {name}, minus each other combination, 95 % interval (as table {table})", ""]
        lines += [shown_tests(compare_groups(percent, "value", chosen).of(name).drop(columns="one")), ""]
    whole = compare_groups(percent, "value", list(best))
    others = whole.of(", ".join(best.values()))
    worst = others.loc[others["p"].idxmax()]
    lines += [
        f"analysis of variance over {whole.df[0] + 1} combinations, z2 observed: F = {whole.F:.1f}, p = {whole.p:.2g}",
        f"Tukey's test: {', '.join(best.values())} against {(others['p'] < 0.05).sum()} of {len(others)} others has "
        f"p < .05; largest p {worst['p']:.2g} ({worst['other']})",
        f"training took {frame[frame['measure'] == 'seconds']['value'].median():.0f} s of one core (median)",
    ]
    return "\n".join(lines) + "\n"


def shown_tests(table: pd.DataFrame) -> str:
    """Two decimals, as in the source; scipy's integral for p is good to some 1e-12."""
    formats = dict.fromkeys(("sum_of_squares", "F", "difference", "low", "high"), "{:.2f}".format)
    formats["p"] = lambda p: "<1e-10" if p < 1e-10 else f"{p:.2g}"
    return table.to_string(index=False, na_rep="", formatters=formats)


def main(folder: Path) -> None:
    rows: list[dict[str, object]] = []
    for count in LATENTS:
        for seed in range(FIRST, FIRST + SETS):
            data = piecewise(SAMPLES, count - SECOND, SECOND, seed=seed)
            for setting, trainings in TRAININGS.items():
                for training in trainings:
                    for weight in (0.0, WEIGHT):
                        rows += scored(data, setting, training, weight, seed)
    folder.mkdir(parents=True, exist_ok=True)
    pd.DataFrame(rows).to_csv(folder / "attribution_maps.csv", index=False, float_format="%.5g")
    write_tables(folder)


def write_tables(folder: Path) -> None:
    """From the rows of a run."""
    if not (folder / "attribution_maps.csv").is_file():
        sys.exit(f"there is no {folder / 'attribution_maps.csv'}; run this without --tables first")
    text = tables(pd.read_csv(folder / "attribution_maps.csv"))
    print(text)
    (folder / "attribution_maps.txt").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    torch.set_num_threads(1)
    places = [argument for argument in sys.argv[1:] if not argument.startswith("-")]
    folder = Path(places[0]) if places else Path(__file__).parents[1] / "docs" / "evidence" / "results"
    write_tables(folder) if "--tables" in sys.argv else main(folder)
