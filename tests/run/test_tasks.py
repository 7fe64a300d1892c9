"""Tasks whose results are kept: each is made once, damage is seen, and a stopped call goes on."""

from typing import ClassVar

import pytest

from haptera.errors import HapteraError, Unfinished
from haptera.run.ledger import Ledger, Piece
from haptera.run.tasks import Task, finish


class Square(Task[int]):
    """The square of a number, as a file or as a folder."""

    made: ClassVar[list[int]] = []

    def __init__(self, number, path=None):
        self.number = number
        self.piece = Piece(f"k{number}", path or f"squares/{number}.txt", f"{number} squared")

    def make(self):
        if self.number < 0:
            raise ValueError(f"{self.number} is too small")
        self.made.append(self.number)
        return self.number**2

    def write(self, result, path):
        (path / "value" if path.is_dir() else path).write_text(str(result))

    def read(self, path):
        return int((path / "value" if path.is_dir() else path).read_text())


@pytest.fixture(autouse=True)
def made(monkeypatch):
    monkeypatch.setattr(Square, "made", [])
    return Square.made


TASKS = [Square(2), Square(3), Square(4, "squares/four")]


@pytest.mark.parametrize("kept", [False, True])
def test_results_come_in_order_and_each_is_made_once(tmp_path, kept, made):
    out = tmp_path if kept else None
    assert finish([*TASKS, Square(2)], out, "squares").results == [4, 9, 16, 4]
    assert made == [2, 3, 4]
    assert finish(TASKS, out, "squares").results == [4, 9, 16]
    assert len(made) == (3 if kept else 6)


@pytest.mark.parametrize("name", ["3.txt", "four/value"])
def test_a_damaged_result_is_named_and_made_again(tmp_path, caplog, name, made):
    finish(TASKS, tmp_path, "squares")
    (tmp_path / "squares" / name).write_text("8")
    made.clear()
    assert finish(TASKS, tmp_path, "squares").results == [4, 9, 16]
    assert made == [3 if name == "3.txt" else 4]
    assert str(tmp_path / "squares" / name.partition("/")[0]) in caplog.text


def test_a_task_that_fails_is_noted_and_does_not_stop_the_others(tmp_path):
    outcome = finish([Square(-1), Square(3)], tmp_path, "squares", tolerate=(ValueError,))
    assert outcome.results == [None, 9]
    assert outcome.finished == [9]
    assert outcome.failures == ["-1 squared: -1 is too small"]
    assert Ledger.open(tmp_path, "squares").failures == {"k-1": "-1 is too small"}
    with pytest.raises(ValueError, match="too small"):
        finish([Square(-1)], None, "squares")


def test_an_interruption_says_how_far_it_came_and_goes_on(tmp_path, made):
    class Stopped(Square):
        def make(self):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as stop:
        finish([Square(2), Stopped(3), Square(4)], tmp_path, "squares", noun="square")
    assert stop.value.__notes__ == [" after 1 of 3 squares"]
    assert finish([Square(2), Square(3), Square(4)], tmp_path, "squares").results == [4, 9, 16]
    assert made == [2, 3, 4]


def test_a_full_disk_loses_nothing(tmp_path, made):
    class Full(Square):
        def write(self, result, path):
            raise OSError(28, "No space left on device")

    with pytest.raises(
        Unfinished, match=r"No space left on device; 1 finished fit is intact, the same command goes on"
    ):
        finish([Square(2), Full(3)], tmp_path, "squares")
    assert finish([Square(2), Square(3)], tmp_path, "squares").results == [4, 9]
    assert made == [2, 3, 3]


def test_what_other_calls_finished_stays(tmp_path, made):
    finish([Square(2)], tmp_path, "squares")
    finish([Square(3)], tmp_path, "squares")
    assert finish([Square(2)], tmp_path, "squares").results == [4]
    assert made == [2, 3]


def test_what_is_wanting_is_said_before_anything_is_made(tmp_path, made):
    class Wanting(Square):
        def check(self):
            raise HapteraError("there is no slate")

    with pytest.raises(HapteraError, match="no slate"):
        finish([Square(2), Wanting(3)], tmp_path, "squares", tolerate=(HapteraError,))
    assert made == []


def test_what_another_version_made_is_made_again(tmp_path, monkeypatch, made):
    monkeypatch.setattr("haptera.run.tasks.__version__", "0.1.9")
    finish(TASKS, tmp_path, "squares")
    monkeypatch.undo()
    made = Square.made
    made.clear()
    assert finish(TASKS, tmp_path, "squares").results == [4, 9, 16]
    assert made == [2, 3, 4]
    finish(TASKS, tmp_path, "squares")
    assert made == [2, 3, 4]


def test_damage_of_results_that_were_not_asked_for_is_left_alone(tmp_path, caplog):
    finish(TASKS, tmp_path, "squares")
    (tmp_path / "squares" / "3.txt").write_text("8")
    assert finish(TASKS[:1], tmp_path, "squares").results == [4]
    assert "made again" not in caplog.text


def test_a_cut_off_result_of_another_call_is_named_before_it_is_forgotten(tmp_path, caplog, made):
    finish(TASKS, tmp_path, "squares")
    (tmp_path / "squares" / "3.txt").write_text("")
    assert finish(TASKS[:1], tmp_path, "squares").results == [4]
    assert str(tmp_path / "squares" / "3.txt") in caplog.text
    assert finish(TASKS, tmp_path, "squares").results == [4, 9, 16]
    assert made == [2, 3, 4, 3]


def test_results_that_the_caller_holds_are_neither_read_nor_told_again(tmp_path, made):
    finish(TASKS[:2], tmp_path, "squares")
    told = []
    held = {"k2": -4}
    found = finish(TASKS, tmp_path, "squares", held=held, each=lambda task, result: told.append(result))
    assert (found.results, told, held) == ([-4, 9, 16], [9, 16], {"k2": -4})
    (tmp_path / "squares" / "2.txt").write_text("8")
    assert finish(TASKS, tmp_path, "squares", held=held).results == [4, 9, 16]
    assert made == [2, 3, 4, 2]


@pytest.mark.long
@pytest.mark.parametrize("kept", [False, True])
def test_processes_make_the_same_results_and_each_is_told_as_it_ends(tmp_path, kept):
    told = []
    out = tmp_path if kept else None
    tasks = [*TASKS, Square(-1)]
    outcome = finish(
        tasks, out, "squares", jobs=2, tolerate=(ValueError,), each=lambda task, result: told.append((task, result))
    )
    assert outcome.results == [4, 9, 16, None]
    assert outcome.failures == ["-1 squared: -1 is too small"]
    assert {(task.number, result) for task, result in told} == {(2, 4), (3, 9), (4, 16)}
    with pytest.raises(ValueError, match="too small"):
        finish([Square(-2), Square(5)], out, "squares", jobs=2)


def test_what_was_found_finished_is_told_too(tmp_path):
    finish(TASKS[:2], tmp_path, "squares")
    told = []
    finish(TASKS, tmp_path, "squares", each=lambda task, result: told.append(result))
    assert told == [4, 9, 16]
