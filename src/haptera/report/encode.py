"""Encoding: a frame as compact JSON that may stand inside a `<script>`, whatever the names in it say.

Text is a dictionary and codes (or runs of codes, where rows are sorted), floats have five significant digits, what is
missing or infinite is null. Everything outside ASCII and every `<`, `>` and `&` is escaped, so no name ends the script.
"""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from markupsafe import Markup

DIGITS = 5


def rounded(values: np.ndarray) -> np.ndarray:
    """Floats with five significant digits.

    >>> rounded(np.array([0.123456789, 1234567.0, 0.0])).tolist()
    [0.12346, 1234600.0, 0.0]
    """
    values = np.asarray(values, dtype=float)
    usable = np.isfinite(values) & (values != 0)
    places = DIGITS - 1 - np.floor(np.log10(np.abs(np.where(usable, values, 1.0))))
    # A power of ten is exact, its reciprocal is not: dividing by the power gives the number that prints short.
    up, down = 10.0 ** np.clip(places, 0, 300), 10.0 ** np.clip(-places, 0, 300)
    return np.where(usable, np.round(np.where(usable, values, 0.0) / down * up) / up * down, values)


def columns(frame: pd.DataFrame) -> dict[str, Any]:
    """The frame as `{"rows", "columns": [{"name", "numbers"} or {"name", "values", "codes" or "runs"}]}`."""
    return {"rows": len(frame), "columns": [_column(str(name), frame[name]) for name in frame.columns]}


def script(content: Mapping[str, Any]) -> Markup:
    """JSON for the inside of a script element."""
    text = json.dumps(content, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    # Safe as markup because nothing is left that HTML could read as anything but text.
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def _column(name: str, values: pd.Series) -> dict[str, Any]:
    kind = values.dtype
    if pd.api.types.is_bool_dtype(kind) or not pd.api.types.is_numeric_dtype(kind):
        return {"name": name, **_text(values)}
    if pd.api.types.is_integer_dtype(kind):
        return {"name": name, "numbers": values.astype("object").where(values.notna(), None).tolist()}
    numbers = rounded(values.to_numpy(dtype=float, na_value=np.nan))
    finite = np.isfinite(numbers)
    listed = numbers.tolist()
    return {
        "name": name,
        "numbers": listed if finite.all() else [v if ok else None for v, ok in zip(listed, finite, strict=True)],
    }


def _text(values: pd.Series) -> dict[str, Any]:
    codes, found = pd.factorize(values)
    encoded: dict[str, Any] = {"values": [str(value) for value in found]}
    starts = np.flatnonzero(np.diff(codes, prepend=-2))
    if len(starts) * 3 < len(codes):
        lengths = np.diff(np.append(starts, len(codes)))
        return encoded | {"runs": np.column_stack([codes[starts], lengths]).ravel().tolist()}
    return encoded | {"codes": codes.tolist()}
