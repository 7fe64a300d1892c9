"""Similarity of classes by their names: how near they are in WordNet, to find dependencies that make no sense.

The similarity of two nouns is 1 / (1 + d), with d the number of steps between them over a common ancestor, as
`path_similarity` of other tools. A class may be named by a word, by several with commas or slashes between them
("tench, Tinca tinca"), or by its number in WordNet 3.0 ("n01440764"). A word stands for its most frequent sense, so
give numbers where that is another ("crane", the machine). Where a name is not in WordNet its last word is taken
("ankle boot": boot).
A class that is not found counts as like every other: nothing is known of it, so no edge of it is called senseless.
WordNet is not shipped. Its own files `index.noun` and `data.noun` are read where $WNSEARCHDIR or $WNHOME say, or where
packages put them: `wordnet-base` of Debian and Ubuntu, the corpus of nltk.
Cost: a second for a thousand classes.
"""

import os
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from haptera.errors import HapteraError

NUMBER = re.compile(r"n(\d{8})")
FAR = 100
"""More steps than there are between any two nouns."""


def wordnet_similarity(names: Sequence[str], folder: Path | None = None) -> tuple[np.ndarray, list[str]]:
    """Return `(classes, classes)` in [0, 1], and the names that WordNet does not know.

    Args:
        names: of the classes.
        folder: with `index.noun` and `data.noun`; sought where people have it if left out.
    """
    folder = folder or wordnet_folder()
    wanted = [_readings(name) for name in names]
    index = _read_index(folder, {word for words in wanted for word in words})
    found = [next((index[word] for word in words if word in index), None) for words in wanted]
    unknown = [name for name, noun in zip(names, found, strict=True) if noun is None]
    nouns = [noun for noun in found if noun is not None]
    if len(nouns) < 2:
        first = ", ".join(repr(name) for name in unknown[:3])
        raise HapteraError(
            f"similarity by wordnet needs classes that are named by nouns; it knows {len(nouns)} of {len(names)} "
            f"names, and not {first}. Name them in the array classes of the file"
        )
    similarity = np.ones((len(names), len(names)))
    known = np.flatnonzero([noun is not None for noun in found])
    similarity[np.ix_(known, known)] = 1 / (1 + _steps(folder / "data.noun", nouns))
    return similarity, unknown


def wordnet_folder() -> Path:
    """Return where WordNet is on this machine."""
    given = [
        Path(os.environ[name]) / below
        for name, below in (("WNSEARCHDIR", ""), ("WNHOME", "dict"))
        if name in os.environ
    ]
    usual = [Path("/usr/share/wordnet"), Path.home() / "nltk_data" / "corpora" / "wordnet"]
    for folder in (*given, *usual):
        if all((folder / name).is_file() for name in ("index.noun", "data.noun")):
            return folder
    sought = ", ".join(str(folder) for folder in (*given, *usual))
    raise HapteraError(
        f"similarity by wordnet needs its files index.noun and data.noun, which are not in {sought}; install them "
        "(apt-get install wordnet-base) or set WNSEARCHDIR to their folder"
    )


def _readings(name: str) -> list[str]:
    """Return the words that a name may be in WordNet, the likeliest first.

    >>> _readings("Ankle boot")
    ['ankle_boot', 'boot']
    """
    name = re.sub(r" \(\d+\)$", "", name).strip().lower()  # names that repeat have their number behind them
    parts = [part.strip() for part in re.split(r"[,/]", name) if part.strip()]
    return [each for part in parts for each in _spell(part)] + [
        _spell(part)[0].rpartition("_")[2] for part in parts if " " in part or "_" in part
    ]


def _spell(part: str) -> list[str]:
    whole = re.sub(r"[\s_]+", "_", part)
    return list(dict.fromkeys([whole, whole.replace("-", "_"), whole.replace("-", "")]))


def _read_index(folder: Path, wanted: set[str]) -> dict[str, int]:
    """Return word -> its first noun, as a place in `data.noun`; numbers of nouns stand for themselves."""
    found = {word: int(match[1]) for word in wanted if (match := NUMBER.fullmatch(word))}
    with (folder / "index.noun").open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            word, _, rest = line.partition(" ")
            if word in wanted:
                fields = rest.split()
                found[word] = int(fields[-int(fields[1])])  # senses come last, the most frequent first
    return found


def _steps(path: Path, nouns: list[int]) -> np.ndarray:
    """Return `(nouns, nouns)`, the steps between two of them over the nearest common ancestor."""
    parents: dict[int, list[int]] = {}
    above = []
    with path.open("rb") as file:

        def look(noun: int) -> list[int]:
            if noun not in parents:
                file.seek(noun)
                parents[noun] = _parents(file.readline().decode("utf-8", "replace"), noun, path)
            return parents[noun]

        for noun in nouns:
            steps, edge, far = {noun: 0}, [noun], 0
            while edge:
                far += 1
                edge = [up for each in edge for up in look(each) if steps.setdefault(up, far) == far]
            above.append(steps)
    places = {noun: place for place, noun in enumerate(sorted(parents))}
    table = np.full((len(nouns), len(places)), FAR, np.uint8)
    for row, steps in zip(table, above, strict=True):
        row[[places[noun] for noun in steps]] = list(steps.values())
    return np.array([(table + row).min(1) for row in table], float)


def _parents(line: str, noun: int, path: Path) -> list[int]:
    """Return the nouns above one, from its line: number, file, kind, how many words, words, how many pointers, ..."""
    fields = line.partition(" | ")[0].split()
    if len(fields) < 6 or fields[0] != f"{noun:08d}":
        raise HapteraError(f"{path} has no noun n{noun:08d}; numbers of WordNet 3.0 and its files were expected")
    first = 4 + 2 * int(fields[3], 16)
    pointers = fields[first + 1 :]
    return [int(pointers[place + 1]) for place in range(0, 4 * int(fields[first]), 4) if pointers[place] in ("@", "@i")]
