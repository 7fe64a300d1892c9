"""The bar: silent where nobody looks, on stderr in a terminal, HTML in a notebook."""

import sys
import types

import pytest

from holdfast.progress import Progress


def count_to_three(**options):
    with Progress("study", 3, **options) as bar:
        for name in ("a", "b", "<c>"):
            bar.advance(name)


def test_nothing_is_said_where_nobody_looks(capfd):
    count_to_three()
    assert capfd.readouterr() == ("", "")


def test_a_terminal_gets_a_bar_on_stderr(capfd, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    count_to_three(show=True)
    out, err = capfd.readouterr()
    assert out == ""
    assert "3/3" in err
    assert "cells" in err


@pytest.fixture
def notebook(monkeypatch):
    shown = []
    handle = types.SimpleNamespace(update=lambda text: shown.append(text))
    display = types.ModuleType("IPython.display")
    display.HTML = str
    display.display = lambda text, display_id: shown.append(text) or handle
    for name, module in {"ipykernel": None, "IPython": None, "IPython.display": display}.items():
        monkeypatch.setitem(sys.modules, name, module or types.ModuleType(name))
    return shown


def test_a_notebook_gets_one_bar_that_is_redrawn(notebook, capfd):
    count_to_three()
    assert len(notebook) == 4
    assert "0/3 cells" in notebook[0]
    assert "value='3' max='3'" in notebook[-1]
    assert "&lt;c&gt;" in notebook[-1]
    assert capfd.readouterr() == ("", "")


def test_no_bar_when_told_so_or_when_there_is_nothing_to_do(notebook):
    count_to_three(show=False)
    with Progress("study", 0):
        pass
    assert notebook == []
