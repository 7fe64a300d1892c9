"""Accuracy without labels: how far off agreement on the line and seven estimators are, on classifiers of digits.

    python experiments/accuracy_without_labels.py [--small] [--out FOLDER]

Fourteen classifiers of scikit-learn learn half of the digits; the reference is a half of the others, clean. Known sets
are the four hold-out corruptions at three severities, on that half; they choose the method and give the intervals. The
new sets are the 15 test corruptions at three severities, on the images that nothing else has seen. Writes
`accuracy_without_labels.md` into FOLDER, by default `docs/evidence/results`; four minutes on one core.
"""

import argparse
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.svm import SVC

from charts import RESULTS
from haptera.analyses.trends.answers import Answers
from haptera.analyses.trends.estimates import estimate, known_errors, predict
from haptera.catalog import find
from haptera.data import digits
from haptera.families import FAMILIES

CLASSIFIERS = {
    **{f"perceptron {width}": MLPClassifier((width,), max_iter=80, random_state=width) for width in (8, 16, 32, 128)},
    **{f"forest {trees}": RandomForestClassifier(trees, random_state=0) for trees in (3, 10, 50)},
    "random trees": ExtraTreesClassifier(50, random_state=0),
    **{f"logistic {c:g}": LogisticRegression(C=c, max_iter=300) for c in (1e-3, 1e-1, 10)},
    **{f"{k} nearest": KNeighborsClassifier(k) for k in (5, 25)},
    "support vectors": SVC(probability=True, random_state=0),
}
TEST = [name for family, names in FAMILIES.items() if family != "holdout" for name in names]
SEVERITIES, HELD_OUT, SIZE = (1, 3, 5), FAMILIES["holdout"], 16
LEAST = 1e-6
"""The least probability; forests say 0."""


def say(models: list, images: torch.Tensor, targets: np.ndarray, name: str) -> Answers:
    """Return what the classifiers say about images."""
    flat = images.flatten(1).numpy()
    chances = np.stack([np.log(np.maximum(model.predict_proba(flat), LEAST)) for model in models])
    return Answers(name, tuple(CLASSIFIERS), chances.argmax(2), chances, targets)


def main() -> None:
    """Train, corrupt, predict, compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true", help="one severity")
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    warnings.simplefilter("ignore", FutureWarning)
    train, test = digits("train", size=SIZE), digits("test", size=SIZE)
    images = train.images(np.arange(len(train))).flatten(1).numpy()
    models = [classifier.fit(images, train.targets) for classifier in CLASSIFIERS.values()]
    rows = np.random.default_rng(0).permutation(len(test))
    halves = rows[: len(rows) // 2], rows[len(rows) // 2 :]

    def see(half: int, shift: str = "", severity: int = 0) -> Answers:
        pictures = test.images(halves[half])
        if shift:
            pictures = find("shifts", shift)(severity)(pictures)
        return say(models, pictures, test.targets[halves[half]], f"{shift} {severity}")

    severities = (3,) if given.small else SEVERITIES
    reference = see(0)
    known = [see(0, shift, severity) for shift in HELD_OUT for severity in (SEVERITIES if not given.small else (2, 4))]
    errors = known_errors(reference, known)
    found = []
    for shift in TEST:
        for severity in severities:
            new = see(1, shift, severity)
            every, line = estimate(reference, new)
            truth = new.accuracy
            off = every.sub(truth, axis=0).abs().mean()
            best = predict(reference, Answers(new.source, new.models, new.predictions, new.logits), known, errors)
            frame = best.frame.set_index("model").loc[list(new.models)]
            held = float(((frame["low"] <= truth) & (truth <= frame["high"])).mean())
            row = {"shift": shift, "severity": severity, "accuracy": truth.mean(), "r2": line.r2, **off.to_dict()}
            row["chosen"] = float((frame["predicted"] - truth).abs().mean())
            found.append(
                row | {"held": held, "method": best.method, "width": float((frame["high"] - frame["low"]).mean())}
            )
    write(pd.DataFrame(found), given.out, len(known))


def write(found: pd.DataFrame, out: Path, known: int) -> None:
    """Write the mean absolute error of every method, over all sets, and where agreements fall on a line."""
    methods = [name for name in found if name not in ("shift", "severity", "accuracy", "r2", "held", "method", "width")]
    lined = found["r2"] >= 0.95
    rows = [
        f"| {name} | {found[name].mean():.4f} | {found[name].median():.4f} | {found[name].max():.4f} |"
        for name in sorted(methods, key=lambda name: found[name].mean())
    ]
    chosen = found["method"].mode()[0]
    head = "| method | mean | median set | worst set |"
    text = [
        f"{len(CLASSIFIERS)} classifiers, {len(found)} sets of new data, {known} known sets of the four hold-out "
        f"corruptions. Mean absolute error of the predicted accuracy, over models and sets; accuracy is "
        f"{found['accuracy'].mean():.3f} on average, from {found['accuracy'].min():.3f}. "
        "R² of the agreement line is .95 or more "
        f"on {lined.sum()} of the sets, and {found['r2'].median():.3f} on the median one.",
        "\n".join([head, "|---|---|---|---|", *rows]),
        f"`chosen` is what hold-out corruptions chose ({chosen}), less what it was off on them where that helped; its "
        f"95 % intervals, {found['width'].mean():.2f} wide on average, hold {100 * found['held'].mean():.0f} % of the "
        "true accuracies.",
    ]
    (out / "accuracy_without_labels.md").write_text("\n\n".join(text) + "\n")
    print("\n\n".join(text))


if __name__ == "__main__":
    main()
