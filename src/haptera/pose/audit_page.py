"""What an audit says: sentences with their numbers, and the sections of its page."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from haptera.measures.keypoints import BOX, PIXELS
from haptera.pose.page import DEFINITIONS as SCORES
from haptera.pose.page import ERRORS, SHARES, overall, times
from haptera.pose.unlabelled import FAR
from haptera.report.figure import Figure
from haptera.report.section import Finding, Listing, Section, answer, enlarge
from haptera.words import count

BREAKS = 2.0
"""A corruption breaks a network where the error is at least so many times that of the frames as they are, unless
another number is asked for: a choice, not a fit."""
SHOWN = 5
TO_LABEL = "Frames to label next"
DEFINITIONS = {
    **{key: text for key, text in SCORES.items() if key != "within, out"},
    "known, new": "labelled frames of videos that the network may have learnt from; of individuals it never saw",
    "breaks": "the normalised error is so many times that on the frames as they are as the setting breaks says, or "
    f"more: {BREAKS:g} unless --breaks says another. The number is a choice; nothing was fitted to find it",
    "distance": "the probability that a frame of the video has less confidence than a labelled frame; .5 is no "
    "difference. No label is used",
    "out of domain": f"the distance is above the setting far: {FAR:g} unless --far says another. The number is a "
    "choice; the order of the videos does not depend on it",
    "confidence": "the mean over the parts of a frame",
    "box size": "the root of the area of the box around the labels of an animal",
}
UNIT_WORDS = {BOX: "box sizes", PIXELS: "pixels"}
SETS = {"known": ("known", "How good is it on known videos?"), "new": ("new", "How good is it on new individuals?")}


def findings(
    rows: pd.DataFrame, videos: pd.DataFrame, label: pd.DataFrame, refused: str, breaks: float = BREAKS
) -> list[Finding]:
    """Return an answer to each question.

    Args:
        rows: scores of the labelled frames.
        videos: see `video_rows`.
        label: see `label_next`.
        refused: why an adapter could not be tried.
        breaks: how many times the error makes a corruption one that breaks the network.
    """
    errors = overall(rows, "normalised_error")
    errors = errors.assign(cell=errors["shift"] + "\n" + errors["stream"] + errors["severity"].astype(str))
    told: list[Finding] = []
    bare = errors[errors["adapter"] == "none"]
    for stream, (word, question) in SETS.items():
        told += _quality(rows, stream, word, question)
    told += _corruptions(bare, breaks)
    told += _adaptation(errors, refused)
    told += _domain(videos)
    if not label.empty:
        worst = label.iloc[0]
        sentence = (
            f"{count(len(label), 'frame')} in {count(label['video'].nunique(), 'video')}; the least certain is frame "
            f"{worst['frame']} of {worst['video']} (confidence {worst['confidence']:.2f})"
        )
        numbers: dict[str, Any] = {"frames_to_label": len(label), "videos_to_label": label["video"].nunique()}
        numbers |= {"first_frame": int(worst["frame"]), "least_confidence": float(worst["confidence"])}
        made = answer("label", "Which frames should be labelled next?", sentence, **numbers)
        told += enlarge(made, count(len(label), "frame"), TO_LABEL)
    return told


def _quality(rows: pd.DataFrame, stream: str, word: str, question: str) -> list[Finding]:
    own = overall(rows)
    own = own[(own["stream"] == stream) & (own["shift"] == "clean") & (own["adapter"] == "none")].set_index("measure")
    if own.empty:
        return []
    pck: Any = own.loc["pck"]
    error: Any = own.loc["normalised_error"]
    unit = unit_of(str(error["normalise"]))
    sentence = (
        f"{pck['value']:.1%} of {count(int(pck['n']), 'keypoint')} within {pck['threshold']:g} {unit} of the label, "
        f"mean error {error['value']:.3f} {unit}"
    )
    pixels: dict[str, Any] = {} if unit == UNIT_WORDS[PIXELS] else {"pixel_error": own.loc["pixel_error", "value"]}
    sentence += "".join(f" ({value:.1f} pixels)" for value in pixels.values())
    numbers = pixels | {
        "pck": pck["value"],
        "normalised_error": error["value"],
        "threshold": pck["threshold"],
        "n": pck["n"],
    }
    told = answer(word, question, sentence, **{f"{stream}_{key}": float(value) for key, value in numbers.items()})
    return enlarge(told, f"{pck['value']:.1%}", SHARES)


def unit_of(normalise: str) -> str:
    """Return in what errors are counted, in words.

    >>> unit_of("box"), unit_of("nose,eye")
    ('box sizes', 'times nose to eye')
    """
    return UNIT_WORDS.get(normalise, f"times {' to '.join(normalise.split(','))}")


def _ratios(bare: pd.DataFrame) -> pd.DataFrame:
    """Return the error under each shift and how many `times` larger it is, of the set where that is most."""
    wide = bare.pivot_table(index="shift", columns="stream", values="value", aggfunc="max")
    shifted = wide.drop(index="clean")
    ratios = pd.DataFrame(
        {"times": shifted.apply(times, axis=1, others=wide.loc["clean"]).max(axis=1), "error": shifted.max(axis=1)}
    )
    return ratios.sort_values(["times", "error"], ascending=False)


def _corruptions(bare: pd.DataFrame, breaks: float) -> list[Finding]:
    if set(bare["shift"]) <= {"clean"}:
        return []
    ratios = _ratios(bare)
    broken, finite = ratios[ratios["times"] >= breaks], np.isfinite(ratios["times"])
    shown = broken.head(SHOWN)
    worst = ", ".join(
        f"{name} ({times:.1f} times)" if np.isfinite(times) else f"{name} (from no error to {error:.3f})"
        for name, times, error in zip(shown.index, shown["times"], shown["error"], strict=True)
    )
    more = f" and {len(broken) - SHOWN} more" if len(broken) > SHOWN else ""
    sentence = f"{len(broken)} of {count(len(ratios), 'corruption')} break it (at least {breaks:g} times the error)"
    sentence += f": {worst}{more}" if worst else ""
    held = ""
    if len(broken) < len(ratios):
        which = "the others multiply" if len(broken) else "at worst they multiply"
        most = ratios.loc[ratios["times"] < breaks, "times"].max()
        held = f"{which} the error by {most:.1f}" + " at most" * bool(len(broken))
    numbers = {
        "broken": len(broken),
        "corruptions": len(ratios),
        "breaks_from": breaks,
        "times": {str(name): float(value) for name, value in ratios.loc[finite, "times"].items()},
    }
    numbers |= {"more": max(len(broken) - SHOWN, 0)}
    if not finite.all():
        numbers["from_no_error_to"] = {str(name): float(value) for name, value in ratios.loc[~finite, "error"].items()}
    told = answer("corruptions", "Under which corruptions does it break?", sentence, held, **numbers)
    return enlarge(told, f"{len(broken)} of {count(len(ratios), 'corruption')}", ERRORS)


def _adaptation(errors: pd.DataFrame, refused: str) -> list[Finding]:
    wide = errors.pivot_table(index="cell", columns="adapter", values="value", aggfunc="max")
    question = "Does adaptation help?"
    others = [name for name in wide.columns if name != "none"]
    if not others:
        return answer("adaptation", question, refused)
    told: list[Finding] = []
    for name in others:
        cells = wide[["none", name]].set_axis(["before", "after"], axis=1)
        cells["gain"] = times(cells["before"], cells["after"])
        cells = cells.sort_values(["gain", "before"], ascending=False)
        helped = int((cells["gain"] > 1).sum())
        sentence = f"{name} lowers the error in {helped} of {count(len(cells), 'cell')}"
        numbers: dict[str, Any] = {"cells_with_lower_error": helped, "cells": len(cells)}
        if helped:
            most = cells.iloc[0]
            shift = str(cells.index[0]).partition("\n")[0]
            how, given = _change(most, "largest")
            sentence += f", most under {shift} ({how})"
            numbers |= given
        clean = cells[cells.index.str.startswith("clean\n")].iloc[-1]
        how, given = _change(clean, "clean")
        sentence += f"; on the frames as they are the error is {how}"
        numbers = {f"{name}: {key}": float(value) for key, value in (numbers | given).items()}
        made = answer("" if told else "adaptation", "" if told else question, sentence, **numbers)
        told += made if told else enlarge(made, f"lower in {helped} of {count(len(cells), 'cell')}", ERRORS)
    return [*told, *([Finding("", "", refused)] if refused else [])]


def _change(cell: "pd.Series[float]", word: str) -> tuple[str, dict[str, float]]:
    """Return what adaptation does to the error of a cell, in words, with its numbers; a factor where there is one."""
    before, after, gain = float(cell["before"]), float(cell["after"]), float(cell["gain"])
    if gain == 1:
        return "the same", {f"{word}_gain": gain}
    if gain == 0 or np.isinf(gain):
        ends = f"{before:.3f} before and 0 after" if after == 0 else f"0 before and {after:.3f} after"
        return ends, {f"{word}_before": before, f"{word}_after": after}
    factor, verb = (gain, "divided") if gain > 1 else (1 / gain, "multiplied")
    return f"{verb} by {factor:.2f}", {f"{word}_gain": gain, f"{word}_factor": factor}


def _domain(videos: pd.DataFrame) -> list[Finding]:
    if videos.empty:
        return []
    out = videos[videos["out"]]
    names = ", ".join(f"{row['video']} (distance {row['distance']:.2f})" for _, row in out.head(SHOWN).iterrows())
    sentence = f"{len(out)} of {count(len(videos), 'video')} out of domain" + (f": {names}" if names else "")
    last = videos.iloc[0]
    sentence += f"; lowest mean confidence {last['confidence']:.2f} in {last['video']}"
    numbers = {"out_of_domain": len(out), "videos": len(videos)}
    columns = [{"name": row["video"], "confidence": row["confidence"], "distance": row["distance"]}
               for _, row in videos.iterrows()]  # fmt: skip
    told = answer("domain", "Which videos are out of domain?", sentence, **numbers, by_video=columns)
    return enlarge(told, f"{len(out)} of {count(len(videos), 'video')}", "Videos")


def audit_sections(
    scores: Sequence[Section], videos: pd.DataFrame, along: pd.DataFrame, label: pd.DataFrame
) -> list[Section | None]:
    """Return the sections of the scores with the videos and frames to label after the frames."""
    labels = {"seconds": "time in the video (s)", "confidence": "mean confidence", "out": "out of domain"}
    line = None if along.empty else Figure(
        "Confidence along the videos", "Frames of a sample of each video; a low stretch is where to look.", along,
        kind="line", x="seconds", y="confidence", color=("video",), labels=labels, limits=(0.0, 1.0),
    )  # fmt: skip
    said = videos.assign(out=videos["out"].map({True: "yes", False: "no"}))
    ranking = Listing("Videos", "The least certain first. No label is used.", said, labels)
    chosen = Listing(
        TO_LABEL, "The least certain first, at least a second apart; look at each before labelling: a "
        "frame without the animal is uncertain too.", label, labels,
    )  # fmt: skip
    domain = Section.of("Videos", "How far each video is from the labelled frames.", line, ranking)
    return [*scores[:2], domain, Section.of("Label next", "Which frames would teach most.", chosen), *scores[2:]]
