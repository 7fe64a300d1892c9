"""Tutorials run from their first cell to their last, and show what the site shows."""

import json
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import notebooks  # noqa: E402

TUTORIALS = sorted(notebooks.TUTORIALS.glob("*.ipynb"))
NUMBER = re.compile(r"[-−]?\d[\d,.]*")


def name(path: Path) -> str:
    return path.stem


def cells(path: Path) -> list[dict]:
    return json.loads(path.read_text("utf-8"))["cells"]


def words(output: dict) -> str:
    """Return the text of an output without its numbers, which may differ a little from machine to machine.

    What is shown as a table is an object of which the text has the address alone.
    """
    if "text/html" in kinds(output):
        return ""
    text = "".join(output.get("text", output.get("data", {}).get("text/plain", "")))
    return " ".join(NUMBER.sub("0", text).split())


def joined(outputs: list[dict]) -> list[dict]:
    """Return outputs with the pieces of one stream put together: where a stream is cut depends on the clock."""
    whole: list[dict] = []
    for output in outputs:
        last = whole[-1] if whole else {}
        if "name" in output and output["name"] == last.get("name"):  # streams alone have a name
            last["text"] = "".join(last["text"]) + "".join(output["text"])
        else:
            whole.append(dict(output))
    return whole


def kinds(output: dict) -> set[str]:
    return set(output.get("data", {})) | {output["output_type"]}


def test_the_index_names_every_tutorial():
    index = (notebooks.TUTORIALS / "index.md").read_text("utf-8")
    assert TUTORIALS
    assert not [path.name for path in TUTORIALS if f"({path.name})" not in index]


def test_a_stream_that_was_cut_in_two_is_one_output():
    def stream(text, name="stdout"):
        return {"output_type": "stream", "name": name, "text": text}

    cut, errors = [stream("a\n"), stream(["b", "c"])], stream("d", "stderr")
    assert joined([*cut, errors]) == [stream("a\nbc"), errors]
    picture = {"output_type": "display_data", "data": {}}
    assert joined([stream("a"), picture, stream("b")]) == [stream("a"), picture, stream("b")]


@pytest.mark.parametrize("path", TUTORIALS, ids=name)
def test_outputs_are_stored_and_all_cells_were_run_in_order(path):
    code = [cell for cell in cells(path) if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1)), "`make notebooks`"
    outputs = [output for cell in code for output in cell["outputs"]]
    assert any("image/png" in kinds(output) for output in outputs)
    assert not [output for output in outputs if output["output_type"] == "error" or output.get("name") == "stderr"]


@pytest.mark.parametrize("path", TUTORIALS, ids=name)
def test_links_lead_somewhere(path):
    text = "".join(line for cell in cells(path) if cell["cell_type"] == "markdown" for line in cell["source"])
    links = re.findall(r"\]\(([^)#]+)", text)
    assert links
    assert not [link for link in links if not (path.parent / link).is_file()]


@pytest.mark.long
@pytest.mark.parametrize("path", TUTORIALS, ids=name)
def test_who_runs_the_tutorial_sees_what_it_shows(path, tmp_path):
    stored = [cell for cell in cells(path) if cell["cell_type"] == "code"]
    made = [cell for cell in notebooks.run(path, tmp_path).cells if cell.cell_type == "code"]
    for before, after in zip(stored, made, strict=True):
        source = "".join(before["source"])
        stored_outputs, new_outputs = joined(before["outputs"]), joined(after.outputs)
        assert [kinds(output) for output in new_outputs] == [kinds(output) for output in stored_outputs], source
        shown, now = ([words(output) for output in outputs] for outputs in (stored_outputs, new_outputs))
        assert now == shown, f"{source}\nthe notebook shows other words: `make notebooks`"
