"""What an analysis found, in sentences for people and as one object for programs."""

from typing import Any

import numpy as np

from holdfast.dependencies.analysis import Analysis

LISTED = 3
"""Classes named as examples."""
TERMS = 4
"""Terms of a combination that are written out."""


def size(analysis: Analysis) -> str:
    """How much data there was, and what was asked."""
    samples, classes = analysis.logits.shape
    onto = f" onto the {analysis.onto.shape[1]:,} of {analysis.onto.path.name}" if analysis.onto else ""
    lasso = analysis.lasso
    asked = f"α {lasso.alpha:g}" if lasso.per_class is None else f"{lasso.per_class} dependencies for each class"
    return f"{samples:,} examples, {classes:,} classes of {analysis.logits.path.name}{onto}; {asked}"


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
        "kkt_violation": float(found.violation.max()),
        "dependencies": [
            {
                "class": target,
                "on": [list(edge) for edge in found.on(target)],
                "error": float(found.error[target]),
                "relative_error": float(found.relative_error[target]),
                "redundancy": float(redundancy[target]),
            }
            for target in range(len(found))
        ],
    }
    if analysis.logits.names:
        content["names"] = analysis.logits.names
    if analysis.onto is not None and analysis.onto.names:
        content["onto_names"] = analysis.onto.names
    return content


def combination(analysis: Analysis, target: int, terms: int = TERMS) -> str:
    """A class as a sum of others, such as `macaw ≈ 0.41 ostrich − 0.2 bittern`."""
    edges = analysis.dependencies.on(target)
    parts = [f"{'−' if value < 0 else '+'} {abs(value):.2g} {analysis.names[on]}" for on, value in edges[:terms]]
    more = f" and {len(edges) - terms} more" if len(edges) > terms else ""
    return f"{analysis.target_names[target]} ≈ {' '.join(parts).removeprefix('+ ') or '0'}{more}"


def _rank(analysis: Analysis) -> str:
    rank, classes = analysis.redundancy.rank, analysis.logits.shape[1]
    if rank == classes:
        return f"{rank:,} of {classes:,}: no class is exactly a combination of others"
    missing = classes - rank
    return f"{rank:,} of {classes:,}: the null space has {missing:,} direction{'' if missing == 1 else 's'}"


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
    edge = f"; {unsure:,} of these shares are at the edge of float64" if unsure else ""
    return f"least of their own, as a share of the square: {names}{edge}"


def _cost(analysis: Analysis) -> list[str]:
    table = analysis.replacement
    errors = table["relative_mean_error"].dropna()
    said = [f"a derived logit is off by {100 * errors.median():.1f} % of the mean logit, in the median over classes"]
    if "accuracy" not in table:
        return [*said, "without targets there is no accuracy"]
    own = float(table["own_accuracy"].iloc[0])
    drop = own - table["accuracy"].to_numpy()
    worst = int(drop.argmax())
    lost = f"falls by {100 * drop[worst]:.2f} points at most ({analysis.target_names[worst]})"
    if drop[worst] <= 0:
        lost = "never falls"
    free = int((drop <= 0).sum())
    return [
        *said,
        f"accuracy of {100 * own:.2f} % stays or rises for {free:,} of {len(table):,} classes, one replaced at a time, "
        f"and {lost}",
    ]


def _conjecture(analysis: Analysis) -> str:
    found = analysis.conjecture
    if not found.dependencies:
        return "|C_ij| < λ/2 had nothing to be wrong about"
    share = 100 * found.wrong / found.dependencies
    return f"|C_ij| < λ/2 was wrong for {found.wrong:,} of {found.dependencies:,} dependencies ({share:.2g} %)"
