"""Settings read into a dataclass: every mistake names the file, the key, what was found and what was expected."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import pytest

from haptera.errors import HapteraError
from haptera.files.schema import read_as, whole_number


@dataclass(frozen=True)
class Settings:
    path: Path
    size: Annotated[int, whole_number(1, 64)] | None = None
    rate: float = 0.5
    seeds: tuple[int, ...] = (0,)
    more: dict[str, Any] = field(default_factory=dict)


def read(**content):
    return read_as(Settings, content, "study.toml", "key of data")


def test_values_are_read_with_defaults_for_the_others():
    assert read(path="a", seeds=[1, 2]) == Settings("a", seeds=(1, 2))
    assert read(path="a", size=None, rate=1, more={"x": 1}) == Settings("a", rate=1, more={"x": 1})


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"size": 3}, "study.toml has no 'path'; a path was expected"),
        ({"path": 3}, "study.toml: path is 3; a path"),
        ({"path": "a", "sise": 3}, "unknown key of data 'sise'; did you mean 'size'"),
        ({"path": "a", "size": 65}, "size is 65; a whole number from 1 to 64"),
        ({"path": "a", "size": True}, "size is True; a whole number"),
        ({"path": "a", "rate": "x"}, "rate is 'x'; a number was expected"),
        ({"path": "a", "seeds": [0, 0.5]}, "seeds is .0, 0.5.; a list, of which every entry is a whole number"),
        ({"path": "a", "more": []}, "more is ..; keys and values"),
    ],
)
def test_a_mistake_is_named(content, message):
    with pytest.raises(HapteraError, match=message):
        read(**content)


def test_what_is_not_a_table_is_refused():
    with pytest.raises(HapteraError, match=r"study\.toml holds 3; keys and values"):
        read_as(Settings, 3, "study.toml", "key of data")
