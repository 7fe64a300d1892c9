"""The table of the house, on packages small enough to count by hand."""

import importlib.util
from pathlib import Path

import pytest

PATH = Path(__file__).parents[2] / "tools" / "house.py"


@pytest.fixture(scope="module")
def house():
    spec = importlib.util.spec_from_file_location("house", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def checkout(tmp_path):
    """Makes a checkout from texts by path inside the package."""

    def make(texts, name="animals"):
        root = tmp_path / name
        for path, text in {"__init__.py": "", **texts}.items():
            file = root / "src" / name / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        return root

    return make


def test_docstrings_comments_and_blank_lines_are_not_code(house, checkout):
    text = '"""A module.\n\nOver lines."""\n\n# why\nx = 1\n"""What x is."""\ny = """text\nthat counts"""\n'
    table = house.House(checkout({"one.py": text})).table()
    assert (table["files"], table["lines"], table["lines of code"]) == (2, 9, 3)


def test_rooms_that_import_each_other_are_a_cycle(house, checkout):
    table = house.House(
        checkout(
            {
                "cats/a.py": "from animals.dogs.b import bark\n",
                "dogs/b.py": "def bark():\n    import animals.errors\n",
                "errors.py": "from animals.cats import a\n",
                "birds/c.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from animals import cats\n",
                "fish/d.py": "from animals.birds import c\nfrom animals.fish import e\n",
            }
        )
    ).table()
    assert table["rooms"] == 4
    assert table["edges between rooms"] == 4
    assert (table["cycles of rooms"], table["rooms in a cycle"]) == (1, 3)


def test_long_files_and_functions_are_counted(house, checkout):
    long = "def f(self, a, b, c, d, e, g, h, i, j, *k):\n" + "    x = 1\n" * 60
    wide = "def g(a, b, c, d, e, f, h, i, j, k, *, l):\n    pass\n"
    table = house.House(checkout({"one.py": long + wide, "two.py": "x = 1\n" * 301})).table()
    assert table["files over 300 lines"] == 1
    assert table["functions over 60 lines"] == 1
    assert table["functions over 10 parameters"] == 1


def test_a_run_that_stands_twice_counts_once_however_long_it_is(house, checkout):
    run = "".join(f"x = {number}\n" for number in range(9))
    named = house.House(checkout({"one.py": run, "two.py": "y = 1\n\n" + run, "three.py": run[: 5 * 6]}))
    assert named.duplicates == ["two.py:3"]


def test_files_that_present_analyses_are_found_in_both_layouts(house, checkout):
    before = {"cli/trends.py": "x = 1\n", "report/trends_events.py": "x = 1\n", "trends/summary.py": "x = 1\n"}
    after = {"analyses/trends/page.py": "x = 1\n", "analysis.py": "x = 1\n", "analyses/trends/side.py": "x = 1\n"}
    others = {"cli/study.py": "x = 1\n", "report/stability_study.py": "x = 1\n", "report/page.py": "x = 1\n"}
    houses = [house.House(checkout(before | others)), house.House(checkout(after | others, "beasts"))]
    assert [own.table()["lines that present analyses"] for own in houses] == [3, 2]
    assert house.show(houses).splitlines()[0].split() == ["before", "after"]


@pytest.mark.long
def test_this_house_has_no_cycle(house):
    assert house.House(PATH.parents[1]).cycles == []
