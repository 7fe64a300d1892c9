"""Head: the lines of YAML at the beginning of a model card, of which `model-index` alone is changed."""

import re
from collections.abc import Sequence
from typing import Any

from haptera.errors import HapteraError, first_line
from haptera.extras import import_extra

KEY = "model-index"
BLOCK = re.compile(r"\A(\s*---[ \t]*(?:\r\n|\n))(.*?)(^---[ \t]*(?:\r\n|\n|\Z))", re.DOTALL | re.MULTILINE)
OWN = re.compile(rf"^{KEY}[ \t]*:.*(?:\r\n|\n)(?:(?:[ \t-].*)?(?:\r\n|\n))*", re.MULTILINE)
"""The key with all that is indented below it, or belongs to its list."""


def with_results(text: str, model: str, results: Sequence[Any], study: str) -> str:
    """Return a card with results in its head, in the place of those of an earlier export of the same study.

    Args:
        text: of the card.
        model: the name that a new model index gets.
        results: entries of the index.
        study: its name, which entries of an earlier export carry.
    """
    yaml = import_extra("yaml", "export", "export card")
    line = "\r\n" if "\r\n" in text else "\n"
    found = BLOCK.match(text)
    if not found and not results:
        return text
    begin, inside, end = found.groups() if found else (f"---{line}", "", f"---{line}")
    content = _read(yaml, inside)
    index = content.get(KEY) or [{"name": model, "results": []}]
    if not (isinstance(index, list) and all(isinstance(each, dict) for each in index)):
        raise HapteraError(f"{KEY} in the head of the card is not a list of models")
    kept = [each for each in index[0].get("results") or [] if not _is_own(each, study)]
    index = [index[0] | {"results": [*kept, *results]}, *index[1:]]
    if index[0]["results"] or len(index) > 1:
        block = yaml.safe_dump({KEY: index}, sort_keys=False, allow_unicode=True, width=10_000).replace("\n", line)
    else:
        block = ""
    made = OWN.sub(lambda _: block, inside, count=1) if OWN.search(inside) else inside + block
    _compare(content, _read(yaml, made))
    rest = text[found.end() :] if found else line + text
    return f"{begin}{made}{end}{rest}"


def _read(yaml: Any, text: str) -> dict[str, Any]:
    try:
        content = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise HapteraError(f"the head of the card is not YAML: {first_line(error)}") from error
    if not isinstance(content or {}, dict):
        raise HapteraError(f"the head of the card holds a {type(content).__name__}; keys and values were expected")
    return content or {}


def _is_own(result: Any, study: str) -> bool:
    """Say whether an earlier export of a study wrote a result."""
    dataset = result.get("dataset") if isinstance(result, dict) else None
    about = dataset.get("args") if isinstance(dataset, dict) else None
    return isinstance(about, dict) and "haptera" in about and about.get("study") == study


def _compare(before: dict[str, Any], after: dict[str, Any]) -> None:
    """Make sure that nothing else in the head was changed."""
    if {**before, KEY: None} != {**after, KEY: None}:
        raise HapteraError(
            f"{KEY} cannot be changed in the head of the card without changing other keys; write it as a block"
        )
