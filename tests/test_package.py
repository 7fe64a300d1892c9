"""The names that the package itself offers, and what its tests need to be installed."""

import ast
import re
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

import haptera

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("name", haptera.__all__)
def test_every_promised_name_is_there(name):
    assert getattr(haptera, name)


def _named_requirements() -> set[str]:
    """Return the distributions that a clean clone installs for its tests: those of the package and of `dev`."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras, wanted, seen = project["optional-dependencies"], [*project["dependencies"], "haptera[dev]"], set()
    while wanted:
        name, of_haptera = re.fullmatch(r"([\w.-]+)(?:\[([\w, -]+)\])?.*", wanted.pop()).groups()
        if name == "haptera":
            wanted += [each for extra in of_haptera.split(",") for each in extras[extra.strip()]]
        seen.add(name.lower().replace("_", "-"))
    return seen


def _imported_modules(folder: str) -> dict[str, Path]:
    """Return the first part of every absolute import -> a file that has it."""
    found = {}
    for path in (ROOT / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
            found |= {name.partition(".")[0]: path for name in names}
    return found


@pytest.mark.long
@pytest.mark.parametrize("folder", ["tests", "examples"])
def test_a_clean_clone_has_what_tests_import(folder):
    homes, named = packages_distributions(), _named_requirements()
    for module, path in _imported_modules(folder).items():
        distributions = {name.lower().replace("_", "-") for name in homes.get(module, [])}
        assert not distributions or distributions & named, f"{path.name} imports {module}, which `dev` does not name"
