"""Do classifiers of scikit-learn fall on a line when digits get noisy, and does any of them leave it?

Run it as `python examples/trends_of_classifiers.py [FOLDER]`. It writes `clean.npz` and `noisy.npz`, for which
`haptera trends clean.npz noisy.npz --out trends` does the same from the command line.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

import haptera

CLASSIFIERS = {
    "naive bayes": GaussianNB(),
    **{f"tree of depth {depth}": DecisionTreeClassifier(max_depth=depth, random_state=0) for depth in (4, 6, 9)},
    **{f"forest of {trees}": RandomForestClassifier(trees, random_state=0) for trees in (3, 10, 60)},
    **{f"{k} nearest": KNeighborsClassifier(k) for k in (1, 15)},
    **{f"ridge {alpha:g}": RidgeClassifier(alpha=alpha) for alpha in (1, 300)},
}


def write_predictions(folder: Path) -> list[str]:
    """Train on half of the digits; what each classifier says about the other half, clean and noisy."""
    images, targets = load_digits(return_X_y=True)
    rows = np.random.default_rng(0).permutation(len(images))
    train, test = rows[:900], rows[900:]
    noise = np.random.default_rng(1).normal(0, 1, images[test].shape)
    sides = {"clean": images[test], "noisy": (images[test] + noise).clip(0, 16)}
    fitted = [classifier.fit(images[train], targets[train]) for classifier in CLASSIFIERS.values()]
    names = np.array(list(CLASSIFIERS))
    for name, pixels in sides.items():
        predictions = np.stack([classifier.predict(pixels) for classifier in fitted])
        np.savez(folder / f"{name}.npz", models=names, predictions=predictions, targets=targets[test], ids=test)
    return [str(folder / f"{name}.npz") for name in sides]


def main(folder: Path) -> None:
    """Fit lines, print what was found, write the page."""
    trends = haptera.trends(*write_predictions(folder))
    print(trends.summary())
    print(f"page: {trends.save(folder / 'trends')['report']}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp(prefix="haptera-")))
