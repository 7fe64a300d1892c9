"""The journal of a ledger: whose content is read again when a study goes on, and when a plan is left as it is."""

import os
import shutil
import time
from pathlib import Path

import pytest

from haptera.run import journal
from haptera.run.ledger import Ledger, Piece

ONE, TWO = Piece("k1", "cells/k1.npz", "one"), Piece("k2", "cells/k2.npz", "two", {"seed": 3})
LATER = 100 * 10**9


def finish(folder):
    """Finish two pieces, and let the journal be later than both."""
    with Ledger(folder, "study") as ledger:
        ledger.plan([ONE, TWO], {"data": "x"})
        for piece in (ONE, TWO):
            with ledger.writing(piece) as file:
                file.write(piece.key.encode() * 100)
    age(folder)


def age(folder):
    os.utime(folder / journal.JOURNAL, ns=(time.time_ns() + LATER, time.time_ns() + LATER))


@pytest.fixture
def read(monkeypatch):
    """The names of the files whose content was read."""
    names: list[str] = []

    def checksum_of(place):
        names.append(Path(place).name)
        return own(place)

    own = journal.checksum_of
    monkeypatch.setattr(journal, "checksum_of", checksum_of)
    return names


def to_make(folder, **settings):
    return [piece.key for piece in Ledger(folder, "study").missing(**settings)]


def test_a_file_whose_stamp_is_as_it_was_is_read_by_those_alone_who_use_it(tmp_path, read):
    finish(tmp_path)
    read.clear()
    assert to_make(tmp_path, read=False) == []
    assert read == []
    ledger = Ledger(tmp_path, "study")
    assert ledger.damaged() == {}
    ledger.checked(ONE)
    assert read == ["k1.npz", "k2.npz", "k1.npz"]


def write_over(path):
    path.write_bytes(b"K1" * 100)
    os.utime(path, ns=(1, 1))  # another time than before, whatever the clock's ticks


def put_in_its_place(path):
    shutil.copy(path.with_name("k2.npz"), path.with_name("aside"))
    path.with_name("aside").replace(path)


@pytest.mark.parametrize("change", [write_over, put_in_its_place, Path.unlink])
def test_a_file_that_was_changed_since_is_noticed(tmp_path, read, change):
    finish(tmp_path)
    change(tmp_path / "cells" / "k1.npz")
    assert to_make(tmp_path, read=False) == ["k1"]


def test_a_file_as_new_as_the_journal_is_read_for_its_stamp_says_nothing(tmp_path, read):
    finish(tmp_path)
    os.utime(tmp_path / journal.JOURNAL)
    read.clear()
    assert to_make(tmp_path, read=False) == []
    assert read == ["k1.npz", "k2.npz"]


def test_a_folder_that_was_copied_is_read_once(tmp_path, read):
    finish(tmp_path / "one")
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    for times in (2, 0):
        read.clear()
        with Ledger(tmp_path / "two", "study") as ledger:
            assert ledger.missing(read=False) == []
            ledger.plan([ONE, TWO], {"data": "x"})
        assert len(read) == times
        age(tmp_path / "two")


def test_a_journal_without_stamps_is_read(tmp_path, read):
    finish(tmp_path)
    path = tmp_path / journal.JOURNAL
    lines = journal.read_journal(path)[0]
    assert all(line.stamp for line in lines.values())
    bare = [journal.line_of(key, journal.Line(line.size, line.checksum)) for key, line in lines.items()]
    assert "stamp" not in "".join(bare)
    path.write_text("".join(bare))
    age(tmp_path)
    read.clear()
    assert to_make(tmp_path, read=False) == []
    assert read == ["k1.npz", "k2.npz"]


def numbers(folder):
    return [(folder / name).stat().st_ino for name in ("plan.json", journal.JOURNAL)]


def plan_again(folder, pieces=(ONE, TWO), data="x"):
    with Ledger(folder, "study") as ledger:
        ledger.plan(pieces, {"data": data})


def test_a_plan_that_says_the_same_is_left_as_it_is(tmp_path):
    finish(tmp_path)
    before = numbers(tmp_path)
    plan_again(tmp_path)
    assert numbers(tmp_path) == before
    for change in ({"data": "y"}, {"pieces": [TWO, ONE]}, {"pieces": [ONE, Piece("k2", "cells/k2.npz", "two")]}):
        plan_again(tmp_path, **change)
        after = numbers(tmp_path)
        assert after[0] != before[0]
        before = after


@pytest.mark.parametrize("spoilt", [b'{"key": "k3", "si', b"no line\n"])
def test_a_journal_with_a_line_that_cannot_be_read_is_written_again(tmp_path, spoilt):
    finish(tmp_path)
    with open(tmp_path / journal.JOURNAL, "ab") as file:
        file.write(spoilt)
    plan_again(tmp_path)
    lines = (tmp_path / journal.JOURNAL).read_bytes()
    assert spoilt not in lines
    assert lines.count(b"\n") == 2
    assert Ledger(tmp_path, "study").missing() == []
