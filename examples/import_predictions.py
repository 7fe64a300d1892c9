"""Predictions made by another framework, here scikit-learn, become cells of a study and rows of its table.

Run it as `python examples/import_predictions.py [FOLDER]`. The same from the command line is `haptera import`.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import RidgeClassifier

from haptera.run.importing import import_predictions
from haptera.run.results import measure, report


def predict_elsewhere(folder: Path) -> dict[float, Path]:
    """Train without haptera, and save what the classifier says about clean and noisy digits, by severity."""
    images, targets = load_digits(return_X_y=True)
    images = images / 16
    rows = np.random.default_rng(0).permutation(len(images))
    train, test = rows[:900], rows[900:]
    classifier = RidgeClassifier().fit(images[train], targets[train])
    noise = np.random.default_rng(1).normal(size=images[test].shape)
    files = {}
    for severity, sigma in ((0.0, 0.0), (1.0, 0.1), (3.0, 0.3)):
        logits = classifier.decision_function((images[test] + sigma * noise).clip(0, 1))
        files[severity] = folder / f"ridge-{severity:g}.npz"
        np.savez(files[severity], logits=logits, targets=targets[test], ids=test)
    return files


def main(folder: Path) -> None:
    """Import the files, measure, print the table, write the report."""
    study = folder / "study"
    for severity, path in predict_elsewhere(folder).items():
        shift = "pixel_noise" if severity else "clean"
        import_predictions(path, study, model="ridge", stream="noise", shift=shift, severity=severity)
    table = measure(study)
    for row in table[table["measure"] == "accuracy"].itertuples():
        print(f"{row.model} on {row.shift} {row.severity:g}: accuracy {row.value:.3f} of {row.n} samples")
    path, summary = report(study)
    print(summary)
    print(f"report: {path}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp(prefix="haptera-")))
