"""Opening: from folders, study files and settings to a gate."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from haptera.analyses.gate import STUDY_FILE, GateSettings
from haptera.analyses.gate.analysis import Gate
from haptera.analyses.gate.bars import Bar, check_bars
from haptera.analyses.gate.decide import COLUMNS, WORST, decide, worst_images
from haptera.analyses.gate.pairs import Pairs, check_measure
from haptera.analyses.gate.quick import RecordedCandidate, baseline_cells, run_race
from haptera.analyses.gate.reading import Reading, read_pairs
from haptera.errors import HapteraError
from haptera.run.cells import open_study
from haptera.run.folder import PLAN
from haptera.run.results import results_of

if TYPE_CHECKING:
    from haptera.data import CorruptedImages, Data
    from haptera.run.study import Study


def open_gate(
    study: "Path | str | Study",
    baseline: Path | str | None,
    settings: GateSettings,
    data: "Data | CorruptedImages | None" = None,
    out: Path | None = None,
    progress: bool | None = None,
) -> Gate:
    """Return the gate of a candidate; see `haptera.gate`."""
    check_measure(settings.measure)
    bars = [Bar.parse(text) for text in settings.bar]
    if baseline is None and (settings.fast or not bars):
        raise HapteraError("a gate needs something to compare with: give a baseline, or bars such as accuracy=0.8")
    if settings.fast:
        assert baseline is not None
        return _quick_gate(study, Path(baseline), settings, data, out, progress)
    folder = _folder(study)
    reading, comparisons, critical = Reading([]), pd.DataFrame(columns=COLUMNS), float("nan")
    if baseline is not None:
        pair = open_study(folder), open_study(Path(baseline))
        reading = read_pairs(*pair, settings.measure, settings.model, settings.baseline_model)
        if reading.pairs:
            comparisons, critical = decide(reading.pairs, settings.measure, settings.tolerance)
    table = results_of(folder).table if bars else pd.DataFrame()
    if bars and settings.model is not None:
        table = table[table["model"] == settings.model]
    worst, pictures = _worst(reading.pairs, comparisons, settings.measure, data)
    return Gate(
        candidate=folder.resolve().name,
        baseline="" if baseline is None else Path(baseline).resolve().name,
        comparisons=comparisons,
        bars=check_bars(table, bars),
        worst=worst,
        measure=settings.measure,
        critical=critical,
        tolerance=settings.tolerance,
        pictures=pictures,
        settings=_described(study, baseline, settings),
        notes=reading.notes,
        failures=reading.failures,
    )


def _quick_gate(
    study: "Path | str | Study",
    baseline: Path,
    settings: GateSettings,
    data: "Data | CorruptedImages | None",
    out: Path | None,
    progress: bool | None,
) -> Gate:
    before = open_study(baseline)
    bars = [Bar.parse(text) for text in settings.bar]
    run = (settings.tolerance, settings.drop, settings.minutes, progress, bars)
    notes, failures = [], []
    if isinstance(study, Path | str) and (Path(study) / PLAN).is_file():
        recorded = RecordedCandidate(open_study(study), settings.model)
        known = baseline_cells(before, settings.baseline_model, recorded.cells())
        found = run_race(recorded, known, *run)
        name = Path(study).resolve().name
        notes.append("the candidate has been run already, so that its answers were read and not made")
    else:
        from haptera.analyses.gate.pictures import data_of
        from haptera.analyses.gate.running import RunningCandidate

        made, name = _unfinished(study)
        with RunningCandidate(made, settings.model, out) as running:
            known = baseline_cells(before, settings.baseline_model, running.cells())
            found = run_race(running, known, *run)
            failures = running.failures
        data = data_of(made.streams) if data is None else data
    worst, pictures = _worst(found.pairs, found.comparisons, "accuracy", data)
    return Gate(
        candidate=name,
        baseline=baseline.resolve().name,
        comparisons=found.comparisons,
        bars=found.bars,
        worst=worst,
        tolerance=settings.tolerance,
        effort=found.effort,
        pictures=pictures,
        settings=_described(study, baseline, settings),
        notes=notes,
        failures=failures,
        folder=out,
    )


def _folder(study: "Path | str | Study") -> Path:
    """Return the folder of a study that has been run."""
    if not isinstance(study, Path | str):
        return Path(study.out)
    path = Path(study)
    if path.suffix == ".toml" or (path.is_dir() and not (path / PLAN).is_file() and (path / STUDY_FILE).is_file()):
        file = path if path.suffix == ".toml" else path / STUDY_FILE
        raise HapteraError(
            f"{study} has not been run; run it (haptera run {file} --out FOLDER) and give its folder, or let --quick "
            "run what is needed"
        )
    return path


def _unfinished(study: "Path | str | Study") -> "tuple[Study, str]":
    """Return a study that is to be run, and its name."""
    from haptera.run.settings import make_study, read_study

    if not isinstance(study, Path | str):
        return study, Path(study.out).resolve().name
    path = Path(study)
    file = path / STUDY_FILE if path.is_dir() else path
    if not file.is_file() or file.suffix != ".toml":
        what = "there is no such file" if not path.exists() else "the name of a study file ends in .toml"
        what = f"it has neither {PLAN} nor {STUDY_FILE}" if path.is_dir() else what
        raise HapteraError(f"{study} is neither a study's folder nor a study file: {what}")
    named = file.resolve().parent.name if file.name == STUDY_FILE else file.stem
    return make_study(read_study(file), file.parent / "haptera-gate", file.parent, where=str(file)), named


def _worst(
    pairs: Sequence[Pairs], comparisons: pd.DataFrame, measure: str, data: "Data | CorruptedImages | None"
) -> tuple[pd.DataFrame, list[Any]]:
    """Return the worst images, and thumbnails of them where there is data."""
    if not pairs:
        return pd.DataFrame(columns=WORST), []
    looked = comparisons[comparisons["images"] > 0]
    worst = worst_images(pairs, looked["verdict"].tolist(), measure)
    if data is None or worst.empty:
        return worst, []
    from haptera.analyses.gate.pictures import thumbnails

    return worst, thumbnails(worst, data)


def _described(study: "Path | str | Study", baseline: Path | str | None, settings: GateSettings) -> Mapping[str, Any]:
    name = study if isinstance(study, Path | str) else study.out
    about = {"study": str(name), "baseline": None if baseline is None else str(baseline)}
    return about | asdict(settings) | {"bar": list(settings.bar)}
