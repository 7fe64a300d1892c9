"""Reading: a side out of an `.npz` file, a CSV of accuracies, or a stream of a study.

    FILE.npz            `models`, and `correct` (models, examples), or `targets` and `predictions`, or `targets` and
                        `logits` or `probabilities` (models, examples, classes)
    FILE.npz:NAME       the same for the array NAME of a file that holds several
    FILE.csv            columns `model`, `accuracy` and perhaps `n`, see `tables`
    FILE.csv:NAME       the same for the column NAME of a wide table with one for each test set
    FOLDER:STREAM       a stream of a study, or only FOLDER:STREAM:SHIFT or FOLDER:STREAM:SHIFT:SEVERITY

`correct` may be of any kind of number, or packed, as `numpy.packbits(correct, axis=1)` does it, with the number of
examples in `n`, or in `NAME_n` for an array NAME. `ids` may name the examples, for all models `(examples,)` or for each
`(models, examples)`; `groups` may name the kind of each model. In a stream of a study every model and adapter is a
model of the side, on the same examples.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from haptera.analyses.trends.side import Side
from haptera.analyses.trends.tables import columns_of_sets, read_table
from haptera.correctness import among
from haptera.errors import HapteraError, hint, unknown
from haptera.files.atomic import check_plain_file
from haptera.files.npz import read_npz
from haptera.outputs import Outputs
from haptera.run.cells import cells_of, open_study
from haptera.words import shorten

ANSWERS = ("predictions", "logits", "probabilities", "softmax")
"""Arrays that say what models answered; all but the first with a number for each class."""
Key = tuple[str, int]
Part = tuple[np.ndarray, np.ndarray]
"""Ids, and what was taken of each, such as whether it is right."""


def read_side(source: str) -> Side:
    """A side of an analysis of trends, from wherever it is."""
    path, names = split_source(source)
    if path.is_dir():
        return read_stream(source, path, names)
    check_plain_file(path)
    if path.suffix.lower() in (".csv", ".tsv"):
        return read_table(path, ":".join(names) or None)
    if len(names) > 1:
        raise HapteraError(f"{source}: one array of {path} can be named; {path}:{names[0]} was expected")
    return _read_npz(path, names[0] if names else None)


def split_source(source: str) -> tuple[Path, list[str]]:
    """The longest beginning of the text, up to a colon or the end, that exists; and what follows it."""
    words = source.split(":")
    for length in range(len(words), 0, -1):
        path = Path(":".join(words[:length])).expanduser()
        if path.name and path.exists():
            return path, words[length:]
    path = Path(words[0])
    beside = [entry.name for entry in path.parent.iterdir()] if path.parent.is_dir() else []
    raise HapteraError(f"there is no file or folder {path};{hint(path.name, beside, cutoff=0.6)}".rstrip(";"))


def _read_npz(path: Path, name: str | None) -> Side:
    content = read_npz(path)
    source = f"{path}:{name}" if name else str(path)
    if "models" not in content:
        raise HapteraError(f"{path} has no array 'models', only {', '.join(content)}; names of models were expected")
    models = content["models"]
    if models.ndim != 1 or models.dtype.kind not in "US":
        raise HapteraError(f"{path}: models are {models.dtype} {models.shape}; names (models,) were expected")
    names = [each.decode("utf-8", "replace") if isinstance(each, bytes) else str(each) for each in models.tolist()]
    correct = _correct(path, content, name)
    groups = np.asarray(content["groups"]).astype(str).tolist() if "groups" in content else None
    if groups is not None and len(groups) != len(names):
        raise HapteraError(f"{path}: there are {len(names)} models and {len(groups)} groups; one each was expected")
    if correct.shape[0] != len(names):
        raise HapteraError(
            f"{source}: there are {len(names)} models and {correct.shape[0]} rows; one row each was expected"
        )
    if "ids" not in content:
        return Side.of_correct(source, names, correct, groups=groups)
    return Side.of_correct(source, names, *_by_id(source, correct, content["ids"]), groups=groups)


def _correct(path: Path, content: dict[str, np.ndarray], name: str | None) -> np.ndarray:
    """`(models, examples)`, whatever the file calls it."""
    packed = [key for key in content if f"{key}_n" in content]
    if name is not None and name not in content:
        raise unknown(f"array in {path}", name, packed or set(content) - {"models", "ids"})
    if name is None and "targets" in content and (kind := next((each for each in ANSWERS if each in content), None)):
        predictions = content[kind] if kind == "predictions" else most_likely(path, kind, content[kind])
        return _right(path, predictions, content["targets"])
    if name is None and "correct" not in content:
        several = f"; name one of its arrays, as in {path}:{packed[0]}" if packed else ""
        raise HapteraError(
            f"{path} has {', '.join(content)}; correct, or predictions and targets, or logits and targets, was expected"
            f"{several}"
        )
    name = name or "correct"
    array, n = content[name], content.get(f"{name}_n", content.get("n"))
    if array.ndim == 2 and array.dtype.kind == "f" and np.isin(array, (0, 1)).all():
        array = array.astype(bool)
    if array.ndim != 2 or not array.shape[1] or array.dtype.kind not in "bui":
        raise HapteraError(
            f"{path}: {name} is {array.dtype} {array.shape}; zeros and ones (models, examples) were expected"
        )
    if n is not None and array.dtype == np.uint8 and array.shape[1] == -(-int(n) // 8) != int(n):
        return np.unpackbits(array, axis=1, count=int(n)).astype(bool)
    if array.dtype != bool and (array.min() < 0 or array.max() > 1):
        raise HapteraError(
            f"{path}: {name} holds {array.max()}; zeros and ones, or packed bits and their number n, were expected"
        )
    return array.astype(bool)


def most_likely(path: Path, kind: str, scores: np.ndarray) -> np.ndarray:
    """`(models, examples)`, the class with the largest of some scores `(models, examples, classes)`."""
    if scores.ndim != 3 or not scores.size or scores.dtype.kind != "f":
        raise HapteraError(f"{path}: {kind} is {scores.dtype} {scores.shape}; (models, examples, classes) was expected")
    if not np.isfinite(scores).all():
        raise HapteraError(f"{path}: {kind} holds numbers that are not finite")
    return scores.argmax(2)


def expand(source: str) -> list[str]:
    """A source that holds several sets, each by its own name: a wide table, packed arrays, or a study."""
    path, names = split_source(source)
    if path.is_dir() and not names:
        return [f"{source}:{stream}" for stream in sorted({cell.stream for cell in cells_of(open_study(path))})]
    if path.is_file() and not names and path.suffix.lower() in (".csv", ".tsv"):
        return [f"{source}:{column}" for column in columns_of_sets(path)] or [source]
    if path.is_file() and not names:
        content = read_npz(path)
        packed = [key for key in content if f"{key}_n" in content]
        return [f"{source}:{key}" for key in packed] if packed and "correct" not in content else [source]
    return [source]


def _right(path: Path, predictions: np.ndarray, targets: np.ndarray) -> np.ndarray:
    if predictions.ndim != 2 or targets.ndim != 1 or predictions.shape[1:] != targets.shape or not len(targets):
        raise HapteraError(
            f"{path}: predictions are {predictions.shape} and targets {targets.shape}; (models, examples) and "
            "(examples,) were expected"
        )
    if predictions.dtype.kind not in "iuUS" or targets.dtype.kind not in "iuUS":
        raise HapteraError(
            f"{path}: predictions are {predictions.dtype} and targets {targets.dtype}; classes, as numbers or names, "
            "were expected"
        )
    return np.stack([among(row[:, None], targets) for row in predictions])


def _by_id(source: str, correct: np.ndarray, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Columns in one order for all models, the ids in that order, and a note if any model had another."""
    if ids.shape == correct.shape[1:]:
        return correct, ids, []
    if ids.shape != correct.shape:
        raise HapteraError(
            f"{source}: ids are {ids.shape}; {correct.shape[1:]} or, with an order for each model, {correct.shape} "
            "was expected"
        )
    order = np.argsort(ids, axis=1, kind="stable")
    own = np.take_along_axis(ids, order, axis=1)
    if (own != own[0]).any():
        other = int((own != own[0]).any(1).argmax())
        raise HapteraError(f"{source}: row {other} of ids names other examples than row 0; the same ones were expected")
    moved = int((ids != ids[0]).any(1).sum())
    note = (
        [f"{source}: {moved} models had their examples in another order; all were put in order by id"] if moved else []
    )
    return np.take_along_axis(correct, order, axis=1), own[0], note


def read_stream(source: str, folder: Path, names: Sequence[str]) -> Side:
    """The finished cells of a stream.

    Args:
        source: what the user wrote, for messages.
        folder: of a study.
        names: the stream, and perhaps one of its shifts, and a severity.
    """
    found = _cells(source, folder, names, Outputs.correct, labelled=True)
    models, ids, correct, notes = _stack(source, found)
    once = len(np.unique(ids)) == len(ids)
    return Side.of_correct(source, models, correct, ids if once else None, notes)


def read_answers_of_stream(
    source: str, folder: Path, names: Sequence[str]
) -> tuple[tuple[str, ...], np.ndarray, np.ndarray | None, np.ndarray | None]:
    """Models, what they predict, their logits and the targets, of a stream; the last two where they were kept."""
    models, _, predictions, _ = _stack(source, _cells(source, folder, names, Outputs.predictions))
    logits = targets = None
    try:
        kept = _stack(source, _cells(source, folder, names, lambda outputs: outputs.logits))
        logits = kept[2] if kept[0] == models else None
        known = _stack(source, _cells(source, folder, names, lambda outputs: outputs.targets, labelled=True))
        targets = known[2][0] if known[0] == models else None
    except HapteraError:
        pass  # only decisions were kept, or there are no targets
    return tuple(models), predictions, logits, targets


def _cells(
    source: str,
    folder: Path,
    names: Sequence[str],
    take: Callable[[Outputs], np.ndarray | None],
    labelled: bool = False,
) -> dict[str, dict[Key, Part]]:
    """Model -> part and seed of the stream -> ids and what was taken of the outputs there."""
    ledger = open_study(folder)
    cells = cells_of(ledger)
    streams = sorted({cell.stream for cell in cells})
    if not names:
        raise HapteraError(f"{source} is a study; name one of its streams, as in {folder}:{(streams or ['STREAM'])[0]}")
    if len(names) > 3:
        raise HapteraError(f"{source}: {folder}:STREAM:SHIFT:SEVERITY was expected at most")
    if names[0] not in streams:
        raise unknown(f"stream in {folder}", names[0], streams)
    found: dict[str, dict[Key, Part]] = {}
    shifts: set[str] = set()
    for cell in cells:
        if cell.stream == names[0] and ledger.there(cell.piece):
            outputs = Outputs.load(ledger.checked(cell.piece))
            shifts |= set(_shown(outputs, "shift")[0])
            wanted = outputs.targets is not None or not labelled
            if wanted and (part := _part(outputs, names[1:], take)) is not None:
                name = cell.model if cell.adapter == "none" else f"{cell.model} · {cell.adapter}"
                found.setdefault(name, {})[cell.part, cell.seed] = part
    if len(names) > 1 and names[1] not in shifts and shifts:
        raise unknown(f"shift in {folder}:{names[0]}", names[1], shifts)
    if not found:
        kind = "with targets " * labelled
        raise HapteraError(f"{source}: no finished cell {kind}is of that stream, shift and severity")
    return found


def _part(outputs: Outputs, wanted: Sequence[str], take: Callable[[Outputs], np.ndarray | None]) -> Part | None:
    """The samples under the wanted shift and severity, in the order of their ids."""
    kept = np.ones(len(outputs), bool)
    for key, name in zip(("shift", "severity"), wanted, strict=False):
        values, codes = _shown(outputs, key)
        kept &= np.array([value == name for value in values])[codes]
    values_taken = take(outputs)
    if not kept.any() or values_taken is None:
        return None
    ids = outputs.ids[kept]
    order = np.argsort(ids, kind="stable")
    return ids[order], values_taken[kept][order]


def _shown(outputs: Outputs, key: str) -> tuple[list[str], np.ndarray]:
    """The values of a context as the user writes them, and which of them each sample has."""
    values, codes = np.unique(outputs.context.get(key, np.full(len(outputs), "")), return_inverse=True)
    return [f"{value:g}" if isinstance(value, float) else str(value) for value in values.tolist()], codes


def _stack(source: str, found: dict[str, dict[Key, Part]]) -> tuple[list[str], np.ndarray, np.ndarray, list[str]]:
    """Models, ids, what was taken of each model and example, and notes."""
    keys = sorted({key for parts in found.values() for key in parts})
    whole = {name: parts for name, parts in found.items() if len(parts) == len(keys)}
    notes = []
    if missing := sorted(set(found) - set(whole)):
        notes.append(f"{source}: {len(missing)} left out, which have not been run on all of it: {shorten(missing)}")
    if not whole:
        raise HapteraError(f"{source}: no model has been run on all of it")
    ids = {name: np.concatenate([parts[key][0] for key in keys]) for name, parts in whole.items()}
    first = next(iter(whole))
    for name, own in ids.items():
        if not np.array_equal(own, ids[first]):
            raise HapteraError(f"{source}: {name} was run on other examples than {first}")
    taken = np.stack([np.concatenate([parts[key][1] for key in keys]) for parts in whole.values()])
    return list(whole), ids[first], taken, notes
