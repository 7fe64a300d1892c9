"""Pieces that join a folder one at a time: each has joined or not, whatever happens in between."""

import json

import pytest

from haptera.errors import HapteraError
from haptera.run import ledger as ledgers
from haptera.run.additions import ADDITIONS, open_for_addition
from haptera.run.folder import PLAN, write_plan
from haptera.run.ledger import Ledger, Piece

WITHIN = ("model",)


def piece_of(key, model):
    return Piece(key, f"cells/{key}.npz", model, {"model": model})


def add(folder, key, model="", within=WITHIN):
    with open_for_addition(folder, "study", noun="cell", about={"name": "x"}, wait=0) as join:
        (folder / "cells").mkdir(exist_ok=True)
        (folder / "cells" / f"{key}.npz").write_bytes(key.encode() * 100)
        join(piece_of(key, model or key), within)


def keys(folder):
    ledger = Ledger.open(folder, "study")
    assert ledger.missing() == []
    return list(ledger.pieces)


def test_pieces_are_listed_in_the_order_in_which_they_came_and_the_plan_is_written_once(tmp_path):
    add(tmp_path, "a")
    plan = (tmp_path / PLAN).read_bytes()
    for key in "bcd":
        add(tmp_path, key)
    assert keys(tmp_path) == ["a", "b", "c", "d"]
    assert (tmp_path / PLAN).read_bytes() == plan
    assert Ledger.open(tmp_path).about == {"name": "x"}
    assert Ledger.open(tmp_path).noun == "cell"


def test_a_later_piece_replaces_those_that_agree_in_the_facts_it_names(tmp_path):
    with Ledger(tmp_path, "study") as ledger:
        ledger.plan([piece_of("p", "net"), piece_of("q", "other")], {})
        for key in "pq":
            with ledger.writing(ledger.pieces[key]) as file:
                file.write(b"x")
    add(tmp_path, "a", "net")
    assert keys(tmp_path) == ["q", "a"]
    add(tmp_path, "b", "other")
    add(tmp_path, "c", "net")
    assert keys(tmp_path) == ["b", "c"]
    add(tmp_path, "b", "other")
    assert keys(tmp_path) == ["c", "b"]


def test_the_next_plan_takes_them_in(tmp_path):
    for key in "ab":
        add(tmp_path, key)
    with Ledger(tmp_path, "study", noun="cell") as ledger:
        ledger.plan([*ledger.pieces.values(), piece_of("c", "c")], {"name": "y"})
    assert not (tmp_path / ADDITIONS).exists()
    ledger = Ledger.open(tmp_path)
    assert [piece.key for piece in ledger.missing()] == ["c"]
    add(tmp_path, "d")
    assert list(Ledger.open(tmp_path).pieces) == ["a", "b", "c", "d"]


@pytest.mark.parametrize("taken_in", [False, True])
def test_killed_while_the_plan_takes_them_in_none_is_lost_and_none_comes_back(tmp_path, monkeypatch, taken_in):
    class Killed(BaseException):
        pass

    def kill(*arguments):
        if taken_in:
            write_plan(*arguments)
        raise Killed

    for key in "ab":
        add(tmp_path, key)
    with monkeypatch.context() as patch:
        patch.setattr(ledgers, "write_plan", kill)
        with pytest.raises(Killed), Ledger(tmp_path, "study") as ledger:
            ledger.plan([ledger.pieces["b"]], {})
    assert keys(tmp_path) == (["b"] if taken_in else ["a", "b"])
    add(tmp_path, "c")
    assert keys(tmp_path) == (["b", "c"] if taken_in else ["a", "b", "c"])


def test_a_line_that_was_cut_short_anywhere_is_as_if_it_had_not_been_written(tmp_path):
    add(tmp_path, "a")
    before = (tmp_path / ADDITIONS).read_bytes()
    add(tmp_path, "b")
    path, whole = tmp_path / ADDITIONS, (tmp_path / ADDITIONS).read_bytes()
    for end in range(len(before), len(whole)):
        path.write_bytes(whole[:end])
        assert list(Ledger.open(tmp_path).pieces) == ["a"]
    add(tmp_path, "c")
    assert keys(tmp_path) == ["a", "c"]


def test_a_flipped_bit_anywhere_is_noticed_and_named(tmp_path):
    for key in "ab":
        add(tmp_path, key)
    path, content = tmp_path / ADDITIONS, (tmp_path / ADDITIONS).read_bytes()
    for place in range(len(content)):
        path.write_bytes(content[:place] + bytes([content[place] ^ 1 << place % 8]) + content[place + 1 :])
        with pytest.raises(HapteraError, match=r"additions\.jsonl: line \d is not what it was"):
            Ledger.open(tmp_path)


def test_a_last_line_with_another_end_is_not_overwritten(tmp_path):
    add(tmp_path, "a")
    path = tmp_path / ADDITIONS
    path.write_bytes(path.read_bytes()[:-1] + b"*")
    with pytest.raises(HapteraError, match=r"additions\.jsonl: line 2 is not what it was"):
        add(tmp_path, "b")


def test_a_plan_of_the_layout_before_is_read_and_gets_the_new_layout_with_the_first_addition(tmp_path):
    old = {"schema": 2, "kind": "study", "noun": "cell", "about": {"name": "old"}, "pieces": []}
    (tmp_path / PLAN).write_text(json.dumps(old, indent=1))
    assert Ledger.open(tmp_path, "study").about == {"name": "old"}
    add(tmp_path, "a")
    assert json.loads((tmp_path / PLAN).read_text())["schema"] == 3
    assert Ledger.open(tmp_path, "study").about == {"name": "old"}
    assert keys(tmp_path) == ["a"]


def test_a_plan_that_was_edited_by_hand_keeps_its_additions(tmp_path):
    add(tmp_path, "a")
    content = json.loads((tmp_path / PLAN).read_text())
    del content["checksum"]
    (tmp_path / PLAN).write_text(json.dumps(content | {"about": {"name": "mine"}}))
    add(tmp_path, "b")
    assert Ledger.open(tmp_path).about == {"name": "mine"}
    assert keys(tmp_path) == ["a", "b"]


def test_a_folder_of_another_kind_is_refused_and_left_as_it_is(tmp_path):
    with Ledger(tmp_path, "calibration") as ledger:
        ledger.plan([], {})
    with pytest.raises(HapteraError, match="holds a calibration; a study was expected"):
        add(tmp_path, "a")
    assert not (tmp_path / ADDITIONS).exists()


def test_what_cannot_be_added_leaves_no_folder(tmp_path):
    def fail():
        with open_for_addition(tmp_path / "out", "study", noun="cell", about={}, wait=0):
            raise HapteraError("nothing came of it")

    with pytest.raises(HapteraError, match="nothing"):
        fail()
    assert not (tmp_path / "out").exists()
