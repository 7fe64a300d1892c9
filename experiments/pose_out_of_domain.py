"""Videos ranked without labels: does the confidence of a pose network say on which animals and images it fails?

    python experiments/pose_out_of_domain.py [FOLDER] [--tiny]

`small` learns 8 drawn individuals; 12 others, each as they are and under 6 corruptions, stand for 84 videos of 12
frames without labels. They are ranked as `haptera pose audit` ranks videos, by mean confidence, and by its distance
from labelled frames; the truth is their normalised error. Spearman's rank correlation; the aim is .7. Writes
`pose_out_of_domain.md` into FOLDER, by default docs/evidence/results. A CPU-minute on one core.
"""

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

from haptera.pose import PoseData, PoseModel, evaluate
from haptera.pose.unlabelled import FAR, distance
from haptera.run.parts import make_shift
from pose_pieces import mean_error, read, small_network, write

SHIFTS = ("clean", "gaussian_noise:2", "contrast:4", "motion_blur:3", "fog:3", "brightness:4", "jpeg_compression:5")
AIM = 0.7


def videos(model: PoseModel, data: PoseData, reference: np.ndarray) -> pd.DataFrame:
    """A row for each individual and shift, with and without the use of labels."""
    rows = []
    for shift in SHIFTS:
        for name in np.unique(data.individuals):
            own = data.select(np.flatnonzero(data.individuals == name))
            outputs = evaluate(model, own, shift=None if shift == "clean" else make_shift(shift))
            confidence = outputs.arrays["confidence"].mean(1)
            row = {"shift": shift, "individual": name, "confidence": float(confidence.mean())}
            rows.append(row | {"distance": distance(confidence, reference), "error": mean_error(outputs)})
    return pd.DataFrame(rows)


def correlation(one: pd.Series, two: pd.Series) -> str:
    """As text; a dash where all of one side are equal."""
    return "–" if one.nunique() == 1 else f"{spearmanr(one, two).statistic:.2f}"


def report(table: pd.DataFrame, known: float) -> list[str]:
    lines = ["| videos | number | by mean confidence | by distance |", "|---|---|---|---|"]
    groups = [("all", table), *((name, own) for name, own in table.groupby("shift", sort=False))]
    means = table.groupby("shift").mean(numeric_only=True)
    groups.insert(1, ("means of the shifts", means))
    for name, own in groups:
        by_mean, by_distance = (correlation(values, own["error"]) for values in (-own["confidence"], own["distance"]))
        lines.append(f"| {name} | {len(own)} | {by_mean} | {by_distance} |")
    far = table["distance"] > FAR
    called, others = table.loc[far, "error"], table.loc[~far, "error"]
    told = (
        f"Error of known individuals {known:.2f}; of the {len(called)} videos called out of domain {called.mean():.2f}"
    )
    lines += ["", f"{told}, of the {len(others)} others {others.mean():.2f}."]
    return lines


def main() -> None:
    given = read()
    model, data, split = small_network(4, 2, 4) if given.tiny else small_network(20, 8, 700)
    within = evaluate(model, data.select(split.within))
    table = videos(model, data.select(split.out), within.arrays["confidence"].mean(1))
    lines = ["Rank correlation with the true error, no label used:", "", *report(table, mean_error(within))]
    write(given.folder, "pose_out_of_domain.md", lines)
    overall = spearmanr(-table["confidence"], table["error"]).statistic
    print(f"{overall:.2f}, aim {AIM}")


if __name__ == "__main__":
    main()
