"""Reading: the pairs of two studies, and what of them could not be paired."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from haptera.analyses.gate.pairs import About, Pairs, Scores, join_seeds, pair_scores, scores_by_place
from haptera.errors import HapteraError, unknown
from haptera.outputs import Outputs
from haptera.run.cells import CellEntry, cells_of
from haptera.run.ledger import Ledger
from haptera.run.matching import Names
from haptera.words import count, join_names, shorten


@dataclass(frozen=True)
class Reading:
    """What two studies say about the same images.

    Attributes:
        pairs: the comparisons.
        notes: what a reader must know about them.
        failures: sentences about comparisons that should have been made and could not.
    """

    pairs: list[Pairs]
    notes: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)


def cells_of_model(ledger: Ledger, model: str | None, option: str) -> dict[Names, CellEntry]:
    """Return the cells that a study planned, of one of its models or of all.

    Args:
        ledger: of the study.
        model: its name; None for all.
        option: what errors call it, such as `baseline model`.
    """
    cells = cells_of(ledger)
    models = list(dict.fromkeys(cell.model for cell in cells))
    if model is not None and model not in models:
        raise unknown(option, model, models)
    if not cells:
        raise HapteraError(f"{ledger.folder} has no cells yet; run a study or import predictions first")
    return {cell.names: cell for cell in cells if model in (None, cell.model)}


def pair_names(
    candidate: Mapping[Names, CellEntry], baseline: Mapping[Names, CellEntry]
) -> tuple[dict[Names, CellEntry], dict[Names, CellEntry]]:
    """Return the cells of both by names that match: where each has one model, it is the same under any name."""
    ours, theirs = ({cell.model for cell in cells.values()} for cells in (candidate, baseline))
    if len(ours) == len(theirs) == 1:
        return {replace(cell, model=min(theirs)).names: cell for cell in candidate.values()}, dict(baseline)
    if not ours & theirs:
        raise HapteraError(
            f"the candidate has the models {join_names(sorted(ours))}, the baseline {join_names(sorted(theirs))}; "
            "say which ones to compare with --model and --baseline-model"
        )
    return dict(candidate), {names: cell for names, cell in baseline.items() if cell.model in ours}


def load_scores(ledger: Ledger, cell: CellEntry, measure: str, like: Scores | None = None) -> Scores:
    """Return the scores of a finished cell, after checking that its file is what it was.

    Args:
        ledger: of the study.
        cell: of the study.
        measure: one of `pairs.MEASURES`.
        like: scores of the same cell of another study, whose groups these get as well.
    """
    return scores_by_place(Outputs.load(ledger.checked(cell.piece)), measure, f"{ledger.folder}: {cell.title}", like)


def read_pairs(
    candidate: Ledger,
    baseline: Ledger,
    measure: str = "accuracy",
    model: str | None = None,
    baseline_model: str | None = None,
) -> Reading:
    """Return every comparison that two studies allow.

    Args:
        candidate: the ledger of the study in question.
        baseline: that of the model before.
        measure: one of `pairs.MEASURES`.
        model: which model of the candidate; all by default.
        baseline_model: which model of the baseline.
    """
    ours, theirs = pair_names(
        cells_of_model(candidate, model, "model"), cells_of_model(baseline, baseline_model, "baseline model")
    )
    done = {piece.key for piece in baseline.finished}
    wanted = {names: cell for names, cell in theirs.items() if cell.key in done}
    found: dict[tuple[object, ...], tuple[About, list]] = {}
    lost, others, unshared = [], [], 0
    for names, cell in wanted.items():
        if names not in ours:
            continue
        own, before = ours[names], load_scores(baseline, cell, measure)
        try:
            after = load_scores(candidate, own, measure, before)
        except HapteraError as error:
            if candidate.there(own.piece) and not candidate.damage(own.piece):
                raise
            lost.append((own.title, str(candidate.failures.get(own.key, error))))
            continue
        others += (
            [own.title] if own.stream_print and cell.stream_print and own.stream_print != cell.stream_print else []
        )
        for (shift, severity), frame in pair_scores(before, after, own.title):
            about = About(*names[:4], shift, float("nan") if severity is None else severity)
            found.setdefault(about.key, (about, []))[1].append(frame)
            unshared += before[shift, severity]["image"].nunique() - len(frame)
    if not found and not lost:
        raise HapteraError(
            f"{candidate.folder} and {baseline.folder} have no finished cell on the same images; "
            f"{_examples(ours)} and {_examples(wanted)}"
        )
    notes, failures = _missing(ours, wanted, lost)
    if others:
        notes.append(f"made with other images or settings than in the baseline: {shorten(others)}")
    if unshared:
        notes.append(f"{count(unshared, 'answer')} of the baseline about images that the candidate has not seen")
    return Reading(join_seeds(found), notes, failures)


def _examples(cells: Mapping[Names, CellEntry]) -> str:
    return shorten([cell.title for cell in cells.values()], 2) or "none"


def _missing(
    ours: Mapping[Names, CellEntry], wanted: Mapping[Names, CellEntry], lost: list[tuple[str, str]]
) -> tuple[list[str], list[str]]:
    """Return notes about what the candidate was never asked, and failures about what it did not answer."""
    asked = {(names[1], names[3]) for names in ours}
    absent = [cell for names, cell in wanted.items() if names not in ours]
    never = [cell.title for cell in absent if (cell.stream, cell.adapter) not in asked]
    left = [(cell.title, "the candidate has no such cell") for cell in absent if (cell.stream, cell.adapter) in asked]
    notes = (
        [f"the candidate was not asked {count(len(never), 'cell')} of the baseline: {shorten(never)}"] if never else []
    )
    failures = []
    for why in dict.fromkeys(reason for _, reason in [*lost, *left]):
        titles = [title for title, reason in [*lost, *left] if reason == why]
        failures.append(
            f"{count(len(titles), 'cell')} of the baseline could not be compared: {shorten(titles)} ({why})"
        )
    return notes, failures
