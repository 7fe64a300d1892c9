"""A folder of finished pieces: what counts as finished, and what is made again."""

import json
import shutil
from pathlib import Path

import pytest

from haptera.errors import HapteraError, Unfinished, WriteError
from haptera.run.ledger import Ledger, Piece

ONE, TWO = Piece("k1", "cells/k1.npz", "one"), Piece("k2", "cells/k2.npz", "two", {"seed": 3})
TREE = Piece("part", "contrast/3", "contrast 3")


def ledger_of(folder, pieces=(ONE, TWO), finished=(ONE, TWO)):
    with Ledger(folder, "study", noun="cell") as ledger:
        ledger.plan(pieces, {"data": "x"})
        for piece in finished:
            with ledger.writing(piece) as file:
                file.write(piece.key.encode() * 100)
    return ledger


def keys(pieces):
    return [piece.key for piece in pieces]


def reopened(folder):
    return Ledger.open(folder, "study", noun="cell")


def test_what_was_finished_is_found_again(tmp_path):
    ledger_of(tmp_path, finished=[ONE])
    ledger = reopened(tmp_path)
    assert ledger.about == {"data": "x"}
    assert ledger.pieces == {"k1": ONE, "k2": TWO}
    assert keys(ledger.finished) == ["k1"]
    assert keys(ledger.missing()) == ["k2"]
    assert ledger.how_far() == " after 1 of 2 cells"
    assert ledger.checked(ONE).read_bytes() == b"k1" * 100


def flip(path):
    content = bytearray(path.read_bytes())
    content[50] ^= 1
    path.write_bytes(bytes(content))


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda path: path.write_bytes(path.read_bytes()[:-1]), "has 199 bytes, and had 200"),
        (flip, "is not what it was"),
        (lambda path: shutil.copy(path.with_name("k2.npz"), path), "is not what it was"),
        (Path.unlink, "is missing"),
    ],
)
def test_a_damaged_piece_is_named_and_made_again(tmp_path, caplog, spoil, said):
    ledger_of(tmp_path)
    spoil(tmp_path / "cells" / "k1.npz")
    ledger = reopened(tmp_path)
    assert keys(ledger.missing()) == ["k1"]
    assert said in caplog.text
    assert "k1.npz" in caplog.text
    with pytest.raises(HapteraError, match=r"k1\.npz"):
        ledger.checked(ONE)
    assert len(ledger.problems()) == 1
    with Ledger(tmp_path, "study") as again:
        for piece in again.missing():
            with again.writing(piece) as file:
                file.write(b"k1" * 100)
    assert reopened(tmp_path).missing() == []
    assert reopened(tmp_path).problems() == []


def test_a_piece_may_be_a_folder(tmp_path):
    def write(ledger):
        with ledger.writing_folder(TREE) as folder:
            (folder / "cat").mkdir()
            (folder / "cat" / "1.png").write_bytes(b"one")
            (folder / "cat" / "2.png").write_bytes(b"two")

    with Ledger(tmp_path, "study") as ledger:
        ledger.plan([TREE], {})
        write(ledger)
    assert reopened(tmp_path).missing() == []
    (tmp_path / "contrast" / "3" / "cat" / "2.png").rename(tmp_path / "contrast" / "3" / "cat" / "3.png")
    with Ledger(tmp_path, "study") as ledger:
        assert keys(ledger.missing()) == ["part"]
        write(ledger)
    assert sorted(path.name for path in (tmp_path / "contrast" / "3" / "cat").iterdir()) == ["1.png", "2.png"]
    assert reopened(tmp_path).missing() == []


def test_a_block_that_fails_leaves_no_piece(tmp_path):
    for write in ("writing", "writing_folder"):
        with Ledger(tmp_path, "study") as ledger:
            ledger.plan([ONE], {})
            with pytest.raises(RuntimeError, match="in the middle"), getattr(ledger, write)(ONE):
                raise RuntimeError("in the middle")
        assert keys(reopened(tmp_path).missing()) == ["k1"]
        assert not [*tmp_path.rglob(".*.part")]


def test_failures_are_noted_and_forgotten_when_the_piece_is_finished(tmp_path):
    with Ledger(tmp_path, "study") as ledger:
        ledger.plan([ONE], {})
        ledger.fail(ONE, "no memory")
    assert reopened(tmp_path).failures == {"k1": "no memory"}
    ledger_of(tmp_path, [ONE], [ONE])
    assert reopened(tmp_path).failures == {}


def test_what_leaves_the_plan_is_no_longer_finished(tmp_path):
    ledger_of(tmp_path)
    ledger_of(tmp_path, [TWO], [])
    assert keys(reopened(tmp_path).finished) == ["k2"]
    assert "k1" not in (tmp_path / "journal.jsonl").read_text()


def test_the_digest_changes_with_what_is_finished_and_with_nothing_else(tmp_path):
    before = ledger_of(tmp_path, finished=[ONE]).digest()
    assert reopened(tmp_path).digest() == before
    (tmp_path / "cells" / "k1.npz").touch()
    assert reopened(tmp_path).digest() == before
    assert ledger_of(tmp_path, finished=[TWO]).digest() != before


def test_leftovers_of_a_killed_run_are_swept(tmp_path):
    ledger_of(tmp_path)
    (tmp_path / ".contrast.abc.part").mkdir()
    (tmp_path / "cells" / ".abc.part").touch()
    assert len(reopened(tmp_path).problems()) == 2
    with Ledger(tmp_path, "study"):
        pass
    assert reopened(tmp_path).problems() == []
    assert sorted(path.name for path in (tmp_path / "cells").iterdir()) == ["k1.npz", "k2.npz"]


def test_a_line_that_was_cut_short_is_as_if_it_had_not_been_written(tmp_path):
    ledger_of(tmp_path)
    journal = tmp_path / "journal.jsonl"
    journal.write_bytes(journal.read_bytes()[:-10])
    assert keys(reopened(tmp_path).missing()) == ["k2"]
    ledger_of(tmp_path)
    assert reopened(tmp_path).missing() == []


def test_a_full_disk_says_what_is_intact_and_how_to_go_on(tmp_path):
    def fill():
        with Ledger(tmp_path, "study", noun="cell") as ledger:
            ledger.plan([ONE, TWO], {})
            with ledger.writing(ONE) as file:
                file.write(b"x")
            raise WriteError("cannot write: no space left")

    with pytest.raises(Unfinished, match="1 finished cell is intact, the same command goes on"):
        fill()


def test_a_run_that_comes_to_nothing_leaves_no_folder(tmp_path):
    with pytest.raises(HapteraError, match="nothing"), Ledger(tmp_path / "out", "study"):
        raise HapteraError("nothing came of it")
    assert not (tmp_path / "out").exists()


def test_other_folders_are_refused_with_a_sentence(tmp_path):
    with pytest.raises(HapteraError, match="no folder"):
        reopened(tmp_path / "nowhere")
    with pytest.raises(HapteraError, match=r"has no plan\.json"):
        reopened(tmp_path)
    ledger_of(tmp_path)
    with pytest.raises(HapteraError, match="holds a study; a calibration was expected"):
        Ledger(tmp_path, "calibration")
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps(json.loads(plan.read_text()) | {"schema": 4}))
    with pytest.raises(HapteraError, match="another layout"):
        reopened(tmp_path)


@pytest.mark.parametrize("name", ["study.json", "manifest.json", "calibration.json", "checkpoint.safetensors"])
def test_folders_of_the_first_version_are_refused_with_a_sentence(tmp_path, name):
    (tmp_path / name).write_text("{}")
    with pytest.raises(HapteraError, match=r"version 0\.1"):
        Ledger(tmp_path, "study")


@pytest.mark.parametrize("path", ["../secret", "/etc/passwd", ""])
def test_a_plan_cannot_lead_out_of_its_folder(tmp_path, path):
    ledger_of(tmp_path, [ONE], [])
    plan = tmp_path / "plan.json"
    plan.write_text(plan.read_text().replace("cells/k1.npz", path))
    with pytest.raises(HapteraError, match="a path inside the folder was expected"):
        reopened(tmp_path)


@pytest.mark.long
def test_a_flipped_bit_anywhere_in_the_plan_is_noticed_and_named(tmp_path):
    ledger_of(tmp_path)
    plan = tmp_path / "plan.json"
    content = plan.read_bytes()
    for place in range(len(content)):
        plan.write_bytes(content[:place] + bytes([content[place] ^ 1 << place % 8]) + content[place + 1 :])
        with pytest.raises(HapteraError, match=r"plan\.json|was written by a version"):
            reopened(tmp_path)
    plan.write_bytes(content)
    assert reopened(tmp_path).pieces == {"k1": ONE, "k2": TWO}


def test_looking_for_problems_leaves_nothing_in_the_folder(tmp_path):
    ledger_of(tmp_path)
    (tmp_path / ".lock").unlink()
    assert reopened(tmp_path).problems() == []
    assert not (tmp_path / ".lock").exists()
