"""An analysis of one's own: how sure an accuracy is after so many labels. This file and one entry point,

    [project.entry-points."haptera.analyses"]
    labels = "my_own_analysis:labels"

make a command: `haptera labels right.npz --out found` has a summary, JSON and a page, and goes on after a kill.
"""

import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from haptera import Analysis
from haptera.report import Figure, Section
from haptera.report.section import Finding, answer
from haptera.run.tasks import Call, finish
from haptera.testing import check_analysis


@dataclass(frozen=True)
class Labels(Analysis):
    """Half of the middle 95 % of accuracies on n images, by n."""

    kind, title = "labels", "Labels"
    spreads: dict[int, float]
    settings: dict[str, int]

    def findings(self) -> list[Finding]:
        """Return one sentence with its numbers."""
        text = ", ".join(f"{half:.3f} after {n} labels" for n, half in self.spreads.items())
        return answer("sure", "How sure is it?", f"within {text}", spreads=self.spreads)

    def sections(self) -> list[Section]:
        """Return one figure; the page adds its table."""
        frame = pd.DataFrame({"labels": list(self.spreads), "within": list(self.spreads.values())})
        return [Section("Spread", figures=(Figure("Spread", "By labels.", frame, "line", "labels", "within"),))]


def spread(right: np.ndarray, n: int, draws: int, seed: int) -> float:
    """Return half of the middle 95 % of accuracies on n images."""
    drawn = np.random.default_rng([seed, n]).choice(right, (draws, n)).mean(1)
    return float(np.ptp(np.quantile(drawn, [0.025, 0.975])) / 2)


def labels(file: Path, *, draws: int = 2000, seed: int = 0, out: Path | None = None) -> Labels:
    """Say how sure an accuracy is after so many labels; the .npz file has `right`, true where the model is right."""
    right, settings, counts = np.load(file)["right"], {"draws": draws, "seed": seed}, (50, 100, 200, 400, 800)
    calls = [Call(spread, f"{n} labels", right=right, n=n, **settings) for n in counts]  # each a piece of the folder
    return Labels(dict(zip(counts, finish(calls, out, "labels").finished, strict=True)), settings)


if __name__ == "__main__":
    path = Path(sys.argv[1]) / "right.npz"
    np.savez(path, right=np.random.default_rng(0).random(1000) < 0.8)
    broken = {law: why for law, why in check_analysis(partial(labels, path)).items() if why}
    print(labels(path).summary(), f"laws broken: {broken or 'none'}", sep="\n")
