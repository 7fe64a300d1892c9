"""What an array says beside its pixels: labels, ids, names of classes, each checked before it is believed."""

import numpy as np

from holdfast.errors import HoldfastError


def read_labels(labels: np.ndarray, samples: int, where: str) -> np.ndarray:
    """`(samples,)` int64, no negatives."""
    return _whole_numbers("labels", labels, samples, where)


def read_ids(ids: np.ndarray, samples: int, where: str) -> np.ndarray:
    """`(samples,)` int64, no negatives, none twice: the randomness of shifts depends on them."""
    numbers = _whole_numbers("ids", ids, samples, where)
    order = np.argsort(numbers, kind="stable")
    twins = np.flatnonzero(np.diff(numbers[order]) == 0)
    if len(twins):
        one, other = order[twins[0]], order[twins[0] + 1]
        raise HoldfastError(f"{where}: ids of rows {one} and {other} are both {numbers[one]}; each may occur once")
    return numbers


def read_names(names: np.ndarray, targets: np.ndarray | None, where: str) -> tuple[str, ...]:
    """The names of the classes, one for each label, none twice."""
    if names.dtype.kind == "S":
        names = np.char.decode(names, "utf-8", "replace")
    if names.dtype.kind != "U" or names.ndim != 1:
        raise HoldfastError(f"{where}: classes are {names.dtype} of shape {names.shape}; a list of names was expected")
    texts = tuple(str(name) for name in names)
    if len(set(texts)) < len(texts):
        twice = next(name for name in texts if texts.count(name) > 1)
        raise HoldfastError(f"{where}: classes names {twice!r} twice")
    if targets is not None and targets.max() >= len(texts):
        row = int(np.argmax(targets >= len(texts)))
        raise HoldfastError(
            f"{where}: the label in row {row} is {targets[row]}, but classes names only {len(texts)}, "
            f"0 to {len(texts) - 1}"
        )
    return texts


def _whole_numbers(what: str, array: np.ndarray, samples: int, where: str) -> np.ndarray:
    if array.dtype.kind not in "iu":
        raise HoldfastError(f"{where}: {what} are {array.dtype}; integers were expected, such as int64")
    if array.ndim != 1:
        raise HoldfastError(
            f"{where}: {what} have shape {array.shape}; one number per image, ({samples},), was expected"
        )
    if len(array) != samples:
        raise HoldfastError(f"{where}: there are {len(array)} {what} for {samples} images")
    wrong = (array < 0) | (array > np.iinfo(np.int64).max)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise HoldfastError(f"{where}: {what} must be 0 or more (int64), found {array[row]} in row {row}")
    return array.astype(np.int64)
