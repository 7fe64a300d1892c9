"""What an analysis found, in sentences for people and as one object for programs."""

from typing import Any

import numpy as np

from haptera.analyses.dependencies.analysis import Analysis
from haptera.files.json import plain

LISTED = 3
"""Classes named as examples."""
COARSE = ("float16", "bfloat16")
"""Formats whose rounding a reader should know of."""
TERMS = 4
"""Terms of a combination that are written out."""


def size(analysis: Analysis) -> str:
    """How much data there was, and what was asked."""
    samples, classes = analysis.logits.shape
    onto = f" onto the {analysis.onto.shape[1]:,} of {analysis.onto.path.name}" if analysis.onto else ""
    lasso = analysis.lasso
    asked = f"α {lasso.alpha:g}" if lasso.per_class is None else f"{lasso.per_class} dependencies for each class"
    halves = "" if analysis.fitted_on is None else "; fitted on one half, evaluated on the other"
    return f"{samples:,} examples, {classes:,} classes of {analysis.logits.path.name}{onto}; {asked}{halves}"


def sentences(analysis: Analysis) -> dict[str, list[str]]:
    """A word and what there is to say about it, for each thing found."""
    return {
        "rank": [_rank(analysis)],
        "found": [_found(analysis)],
        "strongest": _strongest(analysis),
        "redundant": [_redundant(analysis)],
        "cost": _cost(analysis),
        "conjecture": [_conjecture(analysis)],
    }


def notes(analysis: Analysis) -> list[str]:
    """What a reader must know before trusting the rest."""
    samples, classes = analysis.logits.shape
    found = []
    if samples < classes:
        found.append(
            f"there are fewer examples ({samples:,}) than classes ({classes:,}), so every class is a combination of "
            "others whatever the network is; take more examples"
        )
    if analysis.too_few:
        found.append(
            f"half of {samples:,} examples is less than {classes:,} classes, so all are fitted on, and the cost is "
            "measured on the same examples"
        )
    if analysis.saved:
        found.append(
            f"the file holds {analysis.saved}, not logits: rows sum to 1{', as exp' * (analysis.saved != 'softmax')}; "
            "scale and sign of logits matter here, so save the outputs of the last layer"
        )
    loose = int((analysis.dependencies.violation > 1e-8).sum())
    if loose:
        found.append(f"λ is too small for float64: {loose:,} solutions violate their conditions by more than 1e-8 of λ")
    top = float(analysis.lasso.alpha_max_.max())
    if not analysis.dependencies.coefficients.nnz:
        found.append(f"no class depends on any other at this α; the largest α with a dependency is {top:.3g}")
    return found


def as_json(analysis: Analysis) -> dict[str, Any]:
    """The object that `--json` prints."""
    found, redundancy = analysis.dependencies, analysis.redundancy.value
    content: dict[str, Any] = {
        "rank": analysis.redundancy.rank,
        "precision": analysis.redundancy.precision,
        "fitted_on": "all" if analysis.fitted_on is None else "half",
        "notes": notes(analysis),
        "kkt_violation": float(found.violation.max()),
        "dependencies": [
            {
                "class": target,
                "on": [list(edge) for edge in found.on(target)],
                "error": float(found.error[target]),
                "relative_error": float(found.relative_error[target]),
                "redundancy": float(redundancy[target]),
            }
            | cost
            for target, cost in enumerate(_cost_json(analysis))
        ],
    }
    if "own_accuracy" in analysis.replacement:
        content["accuracy"] = float(analysis.replacement["own_accuracy"].iloc[0])
    if analysis.logits.names:
        content["names"] = analysis.logits.names
    if analysis.onto is not None and analysis.onto.names:
        content["onto_names"] = analysis.onto.names
    return content


def _cost_json(analysis: Analysis) -> list[dict[str, Any]]:
    """Of every class what it costs to derive it, on its own images and on all; null where it has none."""
    names = {
        "mean_error": "mean_error",
        "accuracy": "accuracy_derived",
        "positives": "images",
        "own_positive_accuracy": "own_accuracy",
        "positive_accuracy": "own_accuracy_derived",
    }
    table = analysis.replacement
    kept = table[[name for name in names if name in table]].rename(columns=names)
    return [plain(row) for row in kept.to_dict("records")]


def combination(analysis: Analysis, target: int, terms: int = TERMS) -> str:
    """A class as a sum of others, such as `macaw ≈ 0.41 ostrich − 0.2 bittern`."""
    edges = analysis.dependencies.on(target)
    parts = [f"{'−' if value < 0 else '+'} {abs(value):.2g} {analysis.names[on]}" for on, value in edges[:terms]]
    more = f" and {len(edges) - terms} more" if len(edges) > terms else ""
    return f"{analysis.target_names[target]} ≈ {' '.join(parts).removeprefix('+ ') or '0'}{more}"


def _rank(analysis: Analysis) -> str:
    rank, classes = analysis.redundancy.rank, analysis.logits.shape[1]
    digits = f" to the digits of {analysis.redundancy.precision}" if analysis.redundancy.precision in COARSE else ""
    if rank == classes:
        return f"{rank:,} of {classes:,}{digits}: no class is exactly a combination of others"
    missing = classes - rank
    return f"{rank:,} of {classes:,}{digits}: the null space has {missing:,} direction{'' if missing == 1 else 's'}"


def _found(analysis: Analysis) -> str:
    counts = analysis.dependencies.counts
    spread = f"{counts.mean():.1f} for each class ({counts.min()} to {counts.max()})"
    return f"{counts.sum():,} dependencies, {spread}; optimal to {analysis.dependencies.violation.max():.1g} of λ"


def _strongest(analysis: Analysis) -> list[str]:
    relative = np.where(analysis.dependencies.counts > 0, analysis.dependencies.relative_error, np.inf)
    best = [int(place) for place in np.argsort(relative, kind="stable")[:LISTED] if np.isfinite(relative[place])]
    return [f"{combination(analysis, at)} ({100 * relative[at]:.2g} % of its square is left)" for at in best] or [
        "none"
    ]


def _redundant(analysis: Analysis) -> str:
    redundancy = analysis.redundancy
    inside = int((redundancy.value == 0).sum())
    if inside:
        return f"{inside:,} of {len(redundancy.value):,} classes have nothing of their own"
    least = [int(place) for place in np.argsort(redundancy.relative, kind="stable")[:LISTED]]
    names = ", ".join(f"{analysis.target_names[place]} {100 * redundancy.relative[place]:.2g} %" for place in least)
    unsure = int((~redundancy.reliable).sum())
    digits = redundancy.precision if redundancy.precision in COARSE else "float64"
    edge = f"; {unsure:,} of these shares are at the edge of {digits}" if unsure else ""
    return f"least of their own, as a share of the square: {names}{edge}"


def _cost(analysis: Analysis) -> list[str]:
    table = analysis.replacement
    errors = table["relative_mean_error"].dropna()
    said = [f"a derived logit is off by {100 * errors.median():.1f} % of the mean logit, in the median over classes"]
    if "accuracy" not in table:
        return [*said, "without targets there is no accuracy"]
    seen = table[table["positives"] > 0]
    before, after = seen["own_positive_accuracy"], seen["positive_accuracy"]
    worst = seen.iloc[int((before - after).to_numpy().argmax())]
    name = analysis.target_names[int(worst["class"])]
    own, drop = float(table["own_accuracy"].iloc[0]), table["own_accuracy"] - table["accuracy"]
    lost = f"falls by {100 * drop.max():.2f} points at most" if drop.max() > 0 else "never falls"
    return [
        *said,
        f"of a class's own images {100 * before.mean():.1f} % are right before and {100 * after.mean():.1f} % after it "
        f"is derived, in the mean over {len(seen):,} classes; most is lost by {name}: "
        f"{100 * worst['own_positive_accuracy']:.1f} % before, {100 * worst['positive_accuracy']:.1f} % after, of "
        f"{int(worst['positives']):,}",
        f"of all images {100 * own:.2f} % are right; that stays or rises for {int((drop <= 0).sum()):,} of "
        f"{len(table):,} classes, one derived at a time, and {lost}",
    ]


def _conjecture(analysis: Analysis) -> str:
    found = analysis.conjecture
    if not found.dependencies:
        return "|C_ij| < λ/2 had nothing to be wrong about"
    share = 100 * found.wrong / found.dependencies
    return f"|C_ij| < λ/2 was wrong for {found.wrong:,} of {found.dependencies:,} dependencies ({share:.2g} %)"
