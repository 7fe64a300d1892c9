"""The bar: silent where nobody looks, on stderr in a terminal, HTML in a notebook."""

import sys
import types

import pytest

from haptera.progress import Progress


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
    ipython = types.ModuleType("IPython")
    ipython.get_ipython = lambda: types.SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    return shown


def test_a_notebook_gets_one_bar_that_is_redrawn(notebook, capfd):
    count_to_three()
    assert len(notebook) == 5
    assert "0/3 cells" in notebook[1]
    assert "value='3' max='3'" in notebook[-1]
    assert "&lt;c&gt;" in notebook[-1]
    assert capfd.readouterr() == ("", "")


def test_a_process_that_imported_the_kernel_is_no_notebook(capfd):
    pytest.importorskip("ipykernel")
    count_to_three()
    assert capfd.readouterr() == ("", "")


def test_ipython_in_a_terminal_is_no_notebook(notebook, monkeypatch, capfd):
    monkeypatch.setattr(sys.modules["IPython"], "get_ipython", types.SimpleNamespace)
    count_to_three()
    assert notebook == []
    assert capfd.readouterr() == ("", "")


def test_no_bar_when_told_so_or_when_there_is_nothing_to_do(notebook):
    count_to_three(show=False)
    with Progress("study", 0):
        pass
    assert notebook == []


def test_the_time_left_is_in_proportion_to_the_work_that_is_left(notebook, monkeypatch):
    now = [100.0]
    monkeypatch.setattr("haptera.progress.time.monotonic", lambda: now[0])
    with Progress("study", 3, seconds=60) as bar:
        assert "60 s left" in notebook[-1]  # nothing is known but the guess
        now[0] += 20
        bar.advance("a", seconds=10)  # half as fast as was thought: 50 of 60 are left
        assert notebook[-1].endswith("1/3 cells · a · 2 min left")
        bar.advance("b", seconds=30)
        assert "10 s left" in notebook[-1]
        bar.advance("c", seconds=20)
        assert "left" not in notebook[-1]


def test_without_a_guess_every_cell_counts_the_same(notebook, monkeypatch):
    now = [0.0]
    monkeypatch.setattr("haptera.progress.time.monotonic", lambda: now[0])
    with Progress("study", 4) as bar:
        assert "left" not in notebook[-1]
        now[0] += 5
        bar.advance("a")
        assert "15 s left" in notebook[-1]
