"""Pages of the evidence by source are current, and every number in them stands where its row says."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
for folder in ("tools", "docs/_ext"):
    sys.path.insert(0, str(ROOT / folder))

import older  # noqa: E402

import evidence  # noqa: E402


@pytest.mark.parametrize("path", sorted(evidence.pages()), ids=lambda path: path.name)
def test_the_page_is_current(path):
    assert path.read_text("utf-8") == evidence.pages()[path], "run `make evidence`"


@pytest.mark.parametrize("source", evidence.sources(), ids=lambda source: source.name)
def test_a_row_with_a_value_says_where_it_stands(source):
    for row in source.rows:
        assert bool(row.ours) == (row.verdict in ("confirmed", "not confirmed", "undecided")), row
        assert not row.ours or (row.proof and row.file and row.command and row.data), row
        assert not row.file or (ROOT / row.file).is_file(), row
        words = row.command.split()
        assert not words or words[0] == "haptera" or (ROOT / words[1]).is_file(), row


def test_a_number_that_is_gone_is_to_be_read_again(tmp_path):
    (tmp_path / "result.txt").write_text("R²   0.98\nMCC 0.71 ± 0.02")
    row = evidence.Row("table 1", "R²", "confirmed", file="result.txt", proof=("R² 0.98", "0.71 ± 0.02"))
    assert row.checked(tmp_path) == "confirmed"
    (tmp_path / "result.txt").write_text("R² 0.98\nMCC 0.72 ± 0.02")
    assert row.missing(tmp_path) == ["0.71 ± 0.02"]
    assert row.checked(tmp_path) == "read again"


def test_the_overview_counts_what_the_rows_say(tmp_path):
    (tmp_path / "1-one.toml").write_text(
        'title = "One"\nabout = "."\n'
        '[[rows]]\nwhere = "1"\nclaim = "a"\nverdict = "not run yet"\n'
        '[[rows]]\nwhere = "2"\nclaim = "b | c"\nverdict = "not confirmed"\nours = "7"\n'
    )
    text = evidence.overview(evidence.sources(tmp_path))
    assert "| [One](1-one.md) | 1 | 1 | 2 | – |" in text
    assert "| [One](1-one.md) | 2 | b \\| c |  | 7 |" in text


def test_an_unknown_verdict_is_refused(tmp_path):
    (tmp_path / "1-one.toml").write_text(
        'title = ""\nabout = ""\n[[rows]]\nwhere = "1"\nclaim = "a"\nverdict = "true"\n'
    )
    with pytest.raises(SystemExit, match=r"row 1: 'true' is not known"):
        evidence.sources(tmp_path)


def commit(root: Path, time: int, **files: str) -> None:
    for name, text in files.items():
        path = root / name.replace("__", "/").replace("_dot_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    day = f"{time} +0000"
    author = ["-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run(["git", "-C", root, "add", "."], check=True)
    subprocess.run(
        ["git", *author, "-C", root, "commit", "-qm", "x", "--date", day], check=True, env={"GIT_COMMITTER_DATE": day}
    )


def test_a_result_is_older_when_what_it_imports_by_name_changed_since(tmp_path):
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    commit(
        tmp_path,
        1_700_000_000,
        docs__evidence__made_by_dot_toml='"experiments/one.py" = ["one.md"]\n"experiments/two.py" = ["two.md"]\n',
        docs__evidence__results__one_dot_md="1",
        docs__evidence__results__two_dot_md="2",
        experiments__one_dot_py="from shared import x\nfrom haptera.room import Thing\n",
        experiments__two_dot_py="import numpy\n",
        experiments__shared_dot_py="x = 1\n",
        src__haptera__room____init___dot_py="",
    )
    (tmp_path / "src/haptera/room").mkdir(parents=True, exist_ok=True)
    (tmp_path / "src/haptera/room/__init__.py").write_text("from haptera.room.thing import Thing\n")
    commit(tmp_path, 1_700_000_100, src__haptera__room__thing_dot_py="class Thing: ...\n")
    older.commit_times.cache_clear()
    assert older.older_results(tmp_path) == {"one.md": ["src/haptera/room/thing.py"]}
    page = older.note("# Title\n\n```{include} results/one.md\n```\n", older.older_results(tmp_path))
    assert page.startswith("# Title\n\n```{admonition} Older than its code")
    assert older.note("# Title\n\nresults/two.md\n", older.older_results(tmp_path)).count("admonition") == 0


def test_every_result_has_a_script_that_exists():
    import tomllib

    made_by = tomllib.loads((ROOT / "docs/evidence/made_by.toml").read_text())
    assert not [script for script in made_by if not (ROOT / script).is_file()]
    results = {result for each in made_by.values() for result in each}
    kept = {path.name for path in (ROOT / "docs/evidence/results").iterdir()}
    assert not results - kept
    assert not kept - results, "name these in docs/evidence/made_by.toml"
