"""Does contrastive learning find latents that are known? Three rows of tables 6.1 and 6.2, theorem 3, pictures.

    python experiments/identify.py [rows] [missed] [wanted] [limit] [box] [pictures] [--tiny] [--folder FOLDER]

rows       sphere, box and unbounded space, n = 4, five seeds each, beside the observations themselves, an encoder that
           is taught the latents, and random rotations. Aims: R² above .98 on the sphere within 1,000 steps of 512 and a
           minute; MCC above .95 in four of five seeds in the box, within 2,000 steps and a minute each; on unbounded
           space with a normal model R² above .95 and an MCC at least .1 below the box's.
missed     rows of tables 6.1 and 6.2 that few steps, or a box of the wrong size, had missed; one seed each, beside the
           loss of the latents themselves.
wanted     what the loss wants where the model's law is not that of the pairs: its value for the latents as they are,
           turned at random, and turned by the Hadamard matrix, each at its best size; and for normal pairs of a normal
           marginal, the best map that keeps directions and changes lengths. No training but for the last.
limit      theorem 3 on the circle: gap to the cross-entropy for 16 to 4,096 negatives, both forms of the loss.
box        theorem 5 with proposition 6: the same in a box, for the right encoder and for one with a higher limit.
pictures   scenes with six factors: pairs by nearest neighbours in the factors, against pairs by augmentation, against
           six principal components of the pixels (the identity baseline). Aim: R² above theirs by .1.

One core. rows takes about 15 minutes, missed 6, wanted 2, limit one, box less, pictures 15. Writes `identify.csv` into
FOLDER if given. All rows of the tables, and figure 6.2: `haptera identify examples/identify_small.toml`.
n = 10 as in the text, on a GPU: `haptera identify --dimensions 10 --steps 300000 --batch-size 6144 --device cuda
--learning-rate 1e-4`. The encoder needs 5.1 GFLOP for 1,000 latents forth and back, so that 300,000 steps of 3 x 6,144
are about 3e16 FLOP: an hour or two on a GPU of 10 TFLOP/s that is well used. Nobody has run it here.
"""

import argparse
import time
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from scipy.linalg import hadamard
from scipy.optimize import minimize_scalar
from scipy.spatial import cKDTree
from scipy.stats import special_ortho_group
from sklearn.decomposition import PCA
from torch import nn
from torch.nn import functional as F

from haptera.analyses.identify import Training
from haptera.analyses.identify.identifiability import identifiability, latents_fit
from haptera.analyses.identify.inversion import LatentModel, OutputSpace, invert
from haptera.analyses.identify.laws import normal
from haptera.analyses.identify.limit import box_limit, contrastive_limit, measured_box_loss, measured_loss
from haptera.analyses.identify.pictures import PictureEncoder
from haptera.analyses.identify.processes import Process
from haptera.analyses.identify.row import Row, run_row
from haptera.analyses.identify.scenes import FACTORS, draw_scenes, nearest_pairs
from haptera.contrastive.loss import DotProduct, Euclidean, InfoNCE

ROWS = [
    ("sphere/uniform/vmf=10", "sphere/vmf", 1000),
    ("box/uniform/laplace=0.05", "box/laplace", 2000),
    ("box/uniform/normal=0.05", "unbounded/normal", 1000),
]
Rows = list[dict[str, object]]


def rows(tiny: bool) -> Rows:
    found: Rows = []
    for process, model, steps in ROWS:
        for seed in range(1 if tiny else 5):
            begin = time.process_time()
            made = Process.read(process, 4, seed)
            one = invert(made, LatentModel.read(model), Training(steps=20 if tiny else steps), seed=seed)
            seconds = time.process_time() - begin
            training = Training(steps=20 if tiny else 500, supervised=True)
            taught = invert(made, LatentModel.read(model), training, seed=seed)
            scores = {"contrastive": one.contrastive, "identity": one.identity, "supervised": taught.supervised}
            for what, part in scores.items():
                assert part is not None
                known = {"part": "rows", "process": process, "model": model, "what": what, "seed": seed}
                found.append(known | {"r2": part.r2.value, "mcc": part.mcc.value, "null": part.rotation_mcc,
                                      "seconds": seconds if what == "contrastive" else np.nan})  # fmt: skip
            part = one.contrastive
            print(f"{process} {model} seed {seed}: R² {part.r2.value:.4f}, MCC {part.mcc.value:.4f} (rotations "
                  f"{part.rotation_mcc:.2f}), {seconds:.0f} s", flush=True)  # fmt: skip
    frame = pd.DataFrame(found)
    means = frame.groupby(["process", "model", "what"], sort=False)[["r2", "mcc", "null", "seconds"]].mean()
    print(means.round(3).to_string(na_rep=""))
    ours = frame[frame["what"] == "contrastive"].set_index("process")
    sphere, box, space = (ours.loc[[process]] for process, _, _ in ROWS)
    for name, some, measure, aim in (("sphere", sphere, "r2", 0.98), ("box", box, "mcc", 0.95)):
        reached = f"{(some[measure] > aim).sum()} of {len(some)}"
        print(f"{name}: {measure} above {aim} in {reached} seeds; at most {some['seconds'].max():.0f} s")
    below = box["mcc"].mean() - space["mcc"].mean()
    print(f"unbounded normal: R² {space['r2'].min():.3f} at least; mean MCC {below:.3f} below the box's")
    return found


MISSED = [  # the text's score, and if not None the side of a box that is not learnt
    ("sphere/uniform/vmf=1", "sphere/vmf", 5000, 1e-3, "R² .994", None),
    ("box/uniform/laplace=0.05", "box/normal", 2000, 3e-3, "MCC .998", None),
    ("box/uniform/gennorm=0.05,3", "box/laplace", 2000, 3e-3, "MCC .988", None),
    ("box/uniform/laplace=0.05", "box/normal", 2000, 3e-3, "MCC .998", 9.5),
    ("box/uniform/gennorm=0.05,3", "box/laplace", 2000, 3e-3, "MCC .988", 49.0),
    ("unbounded/normal=1/normal=1", "unbounded/normal", 3000, 3e-3, "R² .988", None),
]


def missed(tiny: bool) -> Rows:
    found: Rows = []
    print(
        "n = 4, batches of 512, seed 0; in brackets the text".ljust(82) + "R²     MCC    loss  latents'  size  seconds"
    )
    for process, model, steps, rate, text, side in MISSED:
        sizes = {"steps": 20, "batch_size": 64} if tiny else {"steps": steps}
        row = Row(process, model, learning_rate=rate, start=side, fixed=side is not None, **sizes)
        begin = time.process_time()
        one = run_row(row, 0)
        kept = {"part": "missed", "process": process, "model": model, "steps": row.steps, "text": text}
        kept |= {"fixed": row.fixed} | {name: one[name] for name in ("goodness_of_fit", "latents_fit", "size")}
        found.append(kept | {name: one["contrastive"][name] for name in ("r2", "mcc")})
        print(f"{row.name}, {row.steps:,} steps{', side held' * row.fixed} ({text})".ljust(80)
              + "{r2:6.3f}  {mcc:6.3f}  {goodness_of_fit:6.3f}    {latents_fit:6.3f}  {size:4.1f}".format(**found[-1])
              + f"  {time.process_time() - begin:7.0f}", flush=True)  # fmt: skip
    return found


def wanted(tiny: bool) -> Rows:
    turns = {
        "as they are": np.eye(4),
        "turned at random": special_ortho_group.rvs(4, random_state=1),
        "turned by Hadamard": hadamard(4) / 2,
    }
    found: Rows = []
    print("loss of latents at their best size, n = 4, 512 negatives; in brackets the side of the box that they need")
    print(f"{'':<46}" + "".join(f"{name:>22}" for name in turns))
    for process, model in (*((row[0], row[1]) for row in MISSED[1:3]), ("box/uniform/laplace=0.05", "box/laplace")):
        made, loss = Process.read(process), LatentModel.read(model).loss()
        line = f"{process} → {model}".ljust(46)
        for name, turn in turns.items():
            random = np.random.default_rng(0)
            draws = [(*made.pairs(512, random), made.latents(512, random)) for _ in range(2 if tiny else 20)]
            triples = [[torch.from_numpy((part - 0.5) @ turn.T).float() for part in draw] for draw in draws]

            def value(log_size: float, triples: list = triples, loss: InfoNCE = loss) -> float:
                values = [loss(*(np.exp(log_size) * part for part in triple)).item() for triple in triples]
                return float(np.mean(values)) - loss.chance(512)

            best = minimize_scalar(value, bounds=(1.0, 4.5), method="bounded", options={"xatol": 0.02})
            side = float(np.exp(best.x) * np.abs(turn).sum(1).max())
            found.append(
                {"part": "wanted", "process": process, "model": model, "what": name, "loss": best.fun, "side": side}
            )
            line += f"{best.fun:14.3f} ({side:5.1f})"
        print(line, flush=True)
    return found + lengths(tiny)


def lengths(tiny: bool) -> Rows:
    """The best map h(z) = r(|z|) z/|z| of normal latents, by gradient descent on r at some lengths."""
    found: Rows = []
    for count in (4, 10):
        torch.manual_seed(0)
        radius = nn.Parameter(torch.linspace(0, 4.5, 40))
        loss, optimiser = InfoNCE(Euclidean(), positive_inside=True), torch.optim.Adam([radius], 0.03)
        steps = 10 if tiny else 300
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)

        def stretched(latents: torch.Tensor, radius: nn.Parameter = radius) -> torch.Tensor:
            length = latents.norm(dim=1, keepdim=True).clamp(max=8.99)
            place = length[:, 0] / 9 * 39
            low, share = place.long(), place.frac()
            return (radius[low] * (1 - share) + radius[low + 1] * share)[:, None] * latents / length

        losses = []
        for _ in range(steps):
            first = torch.randn(1024, count)
            value = loss(
                stretched(first), stretched(first + torch.randn_like(first)), stretched(torch.randn(1024, count))
            )
            optimiser.zero_grad()
            value.backward()
            optimiser.step()
            schedule.step()
            losses.append(value.item() - loss.chance(1024))
        latents = torch.randn(8192, count)
        with torch.no_grad():
            score = identifiability(latents.numpy(), stretched(latents).numpy()).r2.value
        process = Process.read("unbounded/normal=1/normal=1", count)
        own = latents_fit(process, loss, 1024, 0.7)
        best = float(np.mean(losses[-30:]))
        found.append(
            {"part": "wanted", "what": f"lengths, {count} latents", "loss": best, "latents_fit": own, "r2": score}
        )
        print(f"unbounded/normal=1/normal=1, {count} latents: loss of the latents {own:.3f}, of the best map that "
              f"keeps directions {best:.3f}, whose R² is {score:.3f}", flush=True)  # fmt: skip
    return found


def limit(tiny: bool) -> Rows:
    found: Rows = []
    exact = contrastive_limit(2.0)
    print("negatives   gap, inside x M   expected   gap, outside x M   expected   (circle, κ = 2)")
    for negatives in (16, 64) if tiny else (16, 64, 256, 1024, 4096):
        line = f"{negatives:9,}"
        for inside in (True, False):
            value, error = measured_loss(2.0, negatives, inside, draws=2000 if tiny else 40_000)
            gap, expected = (value - exact.cross_entropy) * negatives, exact.gap(negatives, inside) * negatives
            line += f"   {gap:+6.3f} ± {error * negatives:.3f}   {expected:+8.3f}"
            row = {"part": "limit", "negatives": negatives, "inside": inside}
            found.append(row | {"gap": gap / negatives, "error": error})
        print(line, flush=True)
    return found


def box(tiny: bool) -> Rows:
    found: Rows = []
    print("Laplace pairs of scale .2 in a box of side 1: limit of the loss, and gap to it x M as expected")
    for title, encode in {"h right": None, "h squared": np.square}.items():
        exact = box_limit(0.2, encode=encode)
        print(f"{title:<12}cross-entropy {exact.cross_entropy:+.4f}")
        for negatives, inside in product((16, 64) if tiny else (16, 64, 256), (True, False)):
            draws = 2000 if tiny else 400_000
            value, error = measured_box_loss(0.2, negatives, inside, encode=encode, draws=draws)
            gap, expected = (value - exact.cross_entropy) * negatives, exact.gap(negatives, inside) * negatives
            side = "inside" if inside else "outside"
            print(f"{negatives:9,} {side:<8} {gap:+6.3f} ± {error * negatives:.3f}   {expected:+8.3f}", flush=True)
            found.append(
                {"part": "box", "what": title, "negatives": negatives, "inside": inside, "gap": gap / negatives}
            )
    return found


def augmented(pictures: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Shifts, flips and brightness, as one does where factors are not known."""
    moves = torch.randint(-4, 5, (2,), generator=generator).tolist()
    moved = torch.roll(F.pad(pictures, (4, 4, 4, 4), mode="replicate"), moves, (2, 3))[..., 4:-4, 4:-4]
    if torch.rand(1, generator=generator) < 0.5:
        moved = moved.flip(3)
    return (moved * (0.6 + 0.8 * torch.rand(len(moved), 1, 1, 1, generator=generator))).clamp(0, 1)


def pictures(tiny: bool) -> Rows:
    count, steps, batch = (600, 10, 64) if tiny else (20_000, 2000, 256)
    random, generator = np.random.default_rng(0), torch.Generator().manual_seed(0)
    factors = random.uniform(size=(count, len(FACTORS)))
    seen = torch.from_numpy(draw_scenes(factors))
    fresh = random.uniform(size=(1000 if tiny else 4096, len(FACTORS)))
    new = torch.from_numpy(draw_scenes(fresh))
    pixels = new.flatten(1).numpy()
    pixels = PCA(len(FACTORS), random_state=0).fit(seen[:2000].flatten(1).numpy()).transform(pixels)
    found: Rows = []

    def report(what: str, points: np.ndarray) -> None:
        part = identifiability(fresh, points)
        found.append({"part": "pictures", "what": what, "r2": part.r2.value, "mcc": part.mcc.value})
        null = f"(rotations {part.rotation_mcc:.2f})"
        print(f"pictures, {what}: R² {part.r2.value:.3f}, MCC {part.mcc.value:.3f} {null}", flush=True)

    report("pixels, six principal components", pixels)
    tree = cKDTree(factors)
    cases = {"pairs of latents, box": ("box", InfoNCE(Euclidean(), positive_inside=True), 7.0),
             "augmentations, sphere": ("sphere", InfoNCE(DotProduct(), positive_inside=True), 3.0)}  # fmt: skip
    for what, (space, loss, size) in cases.items():
        torch.manual_seed(0)
        encoder = PictureEncoder(3, len(FACTORS), OutputSpace(space, size))
        optimiser = torch.optim.Adam(encoder.parameters(), 1e-3)
        for _ in range(steps):
            if space == "box":
                first, second = nearest_pairs(factors, normal(0.1), batch, random, tree)
                views = [seen[first], seen[second], seen[random.integers(count, size=batch)]]
            else:
                views = [augmented(seen[random.integers(count, size=batch)], generator)]
                views = [augmented(views[0], generator), augmented(views[0], generator)]
                views.append(augmented(seen[random.integers(count, size=batch)], generator))
            value = loss(*encoder(torch.cat(views)).split(batch))
            optimiser.zero_grad()
            value.backward()
            optimiser.step()
        with torch.no_grad():
            report(what, encoder(new).numpy())
    return found


PARTS = {"rows": rows, "missed": missed, "wanted": wanted, "limit": limit, "box": box, "pictures": pictures}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)}; all of them if none is named")
    parser.add_argument("--tiny", action="store_true", help="seconds instead of minutes; the figures mean nothing")
    parser.add_argument("--folder", type=Path)
    asked = parser.parse_args()
    if strange := set(asked.parts) - set(PARTS):
        parser.error(f"no part {sorted(strange)[0]!r}; there are {', '.join(PARTS)}")
    found = [row for name in asked.parts or PARTS for row in PARTS[name](asked.tiny)]
    if asked.folder is not None:
        asked.folder.mkdir(parents=True, exist_ok=True)
        pd.DataFrame(found).to_csv(asked.folder / "identify.csv", index=False)


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
