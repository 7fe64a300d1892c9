"""What a diagnosis found, in sentences with their numbers."""

from typing import TYPE_CHECKING, Any

import numpy as np

from haptera.measures.combination import SIZE
from haptera.measures.label_free import ESTIMATES
from haptera.report.section import Finding, answer, lead

if TYPE_CHECKING:
    from haptera.analyses.diagnosis.analysis import Diagnosis
    from haptera.analyses.diagnosis.error_prediction import ErrorPrediction

TEST = ("size", "chance", "p_value", "ratio")
DEFINITIONS = {
    "size of a shift": "the mean over layers of the root of the mean over channels of the squared Wasserstein distance "
    "between statistics on the data and on the reference, in units of the reference's variance; dead channels, whose "
    "variance is nearly zero on both sides, are left out",
    "p": "the share of random divisions of the same images into two parts that are as far apart",
    "predicted accuracy": "a mean of estimators of accuracy without labels, as they are and with lines and planes "
    "through known corruptions of the reference, each by the inverse square of how far off it is on corruptions that "
    "are left out in turn. The 95 % interval is from known corruptions, each told by what the others choose, allowing "
    "for the number of images: it holds for a new shift as far as that is one of their kind",
    "alike": "the cosine between two changes of statistics, all layers with the same weight",
    "N": "the number of images that training statistics count for in BatchNorm layers",
}


def findings(diagnosis: "Diagnosis") -> list[Finding]:
    """Return what is asked, in a word, and the answer; numbers that no sentence says are with the last one."""
    test, profile, priors = diagnosis.test, diagnosis.profile, diagnosis.priors.to_dict("records")
    told = answer("shift", "Has it shifted?", _verdict(diagnosis), **{name: getattr(test, name) for name in TEST})
    nearest, likeness = None, ""
    if (known := diagnosis.nearest) is not None:
        explained = max(float(known["cosine"]), 0.0) ** 2
        likeness = f"; {explained:.0%} of it is like {known['shift']} {known['severity']:g}"
        nearest = {**known[["shift", "severity", "cosine"]], "explained": explained}
    strongest = profile.dropna(subset="normalised").sort_values("normalised", ascending=False)["layer"].head(3)
    where = f"strongest in {', '.join(strongest)}{likeness}"
    told += answer("where", "Where?", where, layers=profile.to_dict("records"), nearest=nearest)
    rest: dict[str, Any] = {}
    if text := _accuracy(diagnosis):
        told += answer("accuracy", "What does it cost?", text, **_cost(diagnosis))
        if diagnosis.predicted is not None:
            told += _methods(diagnosis.predicted)
            told += answer("believe", "May it be believed?", *_conditions(diagnosis))
    else:
        rest |= _cost(diagnosis)
    if priors:
        each = ", ".join(f"{row['prior']:.0f} for batches of {row['n']:.0f}" for row in priors)
        small = "with batches of fewer than 16 leave it out, and statistics move along the stream"
        told += answer("BatchNorm prior", "How should adaptation be set?", f"N = {each}; {small}", priors=priors)
    else:
        rest |= {"priors": priors}
    count = {"layers": len(profile), "channels": int(profile["channels"].sum()), "dead": int(profile["dead"].sum())}
    compared = f"{count['layers']} layers, {count['channels']:,} channels"
    if count["dead"]:
        where = f"in {(profile['dead'] > 0).sum()} layers"
        compared += f"; {count['dead']:,} of them dead (they do not vary), {where}, left out"
    told += answer("compared", "What was compared?", compared, **rest, compared=count)
    return lead(told, _leads(diagnosis))


def _leads(diagnosis: "Diagnosis") -> dict[str, tuple[str, str]]:
    """Return the number of each answer and where the page shows it."""
    test, guess, known = diagnosis.test, diagnosis.predicted, diagnosis.nearest
    ratio = f"{test.ratio:.1f} x chance" if test.chance and np.isfinite(test.ratio) else ""
    leads = {"shift": (ratio, "Distance over depth"), "compared": ("", "Layers"), "BatchNorm prior": ("", "Best N")}
    leads["where"] = ("" if known is None else f"like {known['shift']} {known['severity']:g}", "Map of shifts")
    if guess is not None:
        number = f"{1 - guess.error:.0%} predicted" if guess.means_something else "not to be predicted"
        leads |= {"accuracy": (number, "Error against size"), "methods": ("", "Accuracy without labels")}
        leads["believe"] = ("", "Map of shifts")
    elif diagnosis.measured_error is not None:
        leads["accuracy"] = (f"{1 - diagnosis.measured_error:.1%} measured", "")
    return leads


def _cost(diagnosis: "Diagnosis") -> dict[str, Any]:
    guess = diagnosis.predicted
    errors = {"reference": diagnosis.reference_error, "measured": diagnosis.measured_error}
    errors |= {"predicted": None if guess is None else guess.error}
    return {
        "reference_error": errors["reference"],
        "measured_error": errors["measured"],
        "prediction": None if guess is None else vars(guess),
        "accuracies": {name: None if error is None else 1 - error for name, error in errors.items()},
        "families": diagnosis.families.to_dict("records"),
        "regressions": diagnosis.regressions.to_dict("records"),
    }


def _accuracy(diagnosis: "Diagnosis") -> str:
    """Return what is known of accuracies: measured where there are labels, predicted where there are none."""
    sides, own = [], []
    if diagnosis.reference_error is not None:
        sides.append(f"{diagnosis.reference} {1 - diagnosis.reference_error:.1%}")
    if diagnosis.measured_error is not None:
        own.append(f"{1 - diagnosis.measured_error:.1%} measured")
    if (guess := diagnosis.predicted) is not None:
        ends = f"{1 - guess.high:.0%} to {1 - guess.low:.0%}"
        if guess.means_something:
            own.append(f"{1 - guess.error:.0%} ({ends}) predicted without labels")
        else:
            why = ends if guess.inside else "the shift is larger than every known corruption"
            own.append(f"cannot be predicted without labels ({why})")
    return "; ".join(sides + ([f"{diagnosis.data} {', '.join(own)}"] if own else []))


def _methods(guess: "ErrorPrediction") -> list[Finding]:
    """Say what each estimator says, and which of them count most."""
    rows = guess.methods
    plain = [row for row in rows if row["method"] in ESTIMATES]
    each = ", ".join(f"{row['method']} {row['accuracy']:.0%}" for row in sorted(plain, key=lambda row: row["off"]))
    size = next(row for row in rows if row["method"] == f"line of {SIZE}")
    most = ", ".join(f"{row['method']} {row['weight']:.0%}" for row in rows[:3])
    chosen = f"chosen on {len(guess.chosen_on)} known corruptions; counts most: {most}"
    return answer(
        "methods",
        "What do the estimators say?",
        f"{each}, {size['method']} {size['accuracy']:.0%}",
        f"{chosen}; off by {guess.off:.3f} on {guess.corruptions} that had no say",
    )


def _conditions(diagnosis: "Diagnosis") -> list[str]:
    """Say under which conditions the predicted accuracy may be believed, and which of them hold."""
    guess = diagnosis.predicted
    assert guess is not None
    told = [f"the interval holds for {guess.held:.0%} of {guess.corruptions} known corruptions, each by the others"]
    size = "within" if guess.inside else "beyond"
    like = (
        "" if (known := diagnosis.nearest) is None else f", and {max(known['cosine'], 0.0) ** 2:.0%} of it is like one"
    )
    verdict = "yes" if guess.means_something else "no"
    told.insert(0, f"{verdict}, if this shift is like them: its size is {size} theirs{like}")
    return [*told, "classes must be as frequent as in the reference, which nothing without labels can tell"]


def _verdict(diagnosis: "Diagnosis") -> str:
    """Say whether there is a shift; never from a number that is not finite."""
    test, data, reference = diagnosis.test, diagnosis.data, diagnosis.reference
    if not np.isfinite([test.size, test.chance, test.p_value]).all():
        return f"cannot say: its size is {test.size:g} and chance gives {test.chance:g}"
    halves = f"two random parts of {reference} and {data} together" if reference else f"two random halves of {data}"
    p = f"p < {1 / test.divisions:g}" if test.p_value <= 1 / test.divisions else f"p = {test.p_value:.3f}"
    verdict = "clear" if test.p_value < 0.01 else "likely" if test.p_value < 0.05 else "none to be seen"
    if not test.chance:
        return f"{verdict}: its size is {test.size:.3g}, where {halves} do not differ at all ({p})"
    return f"{verdict}: {test.ratio:.1f} x the distance of {halves} ({p})"
