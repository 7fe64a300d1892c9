"""Scripts of `benchmarks/` and `experiments/` still find what they use, and make runs all of them."""

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SCRIPTS = [path for kind in ("benchmarks", "experiments") for path in sorted((ROOT / kind).glob("*.py"))]


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.long
@pytest.mark.parametrize("script", SCRIPTS, ids=name)
def test_names_that_a_script_imports_exist(script, monkeypatch):
    monkeypatch.syspath_prepend(script.parent)
    runpy.run_path(str(script), run_name="imported")


@pytest.mark.parametrize("script", [path for path in SCRIPTS if "__main__" in path.read_text("utf-8")], ids=name)
def test_make_runs_the_script(script):
    target = re.search(
        rf"^{script.parent.name}:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE
    )
    assert f"python {name(script)}" in target[1]
