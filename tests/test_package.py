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
    project = _project()
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


def _project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_supported_pythons_are_the_same_everywhere():
    project = _project()
    versions = [each.rpartition(" ")[2] for each in project["classifiers"] if "Python :: 3." in each]
    assert project["requires-python"] == f">={versions[0]}"
    for page in ("README.md", "docs/start/getting-started.md"):
        assert f"Python {', '.join(versions[:-1])} or {versions[-1]}" in (ROOT / page).read_text(), page


def _texts() -> list[Path]:
    return [path for folder in ("src", "docs") for path in (ROOT / folder).rglob("*") if path.suffix in (".py", ".md")]


def test_every_extra_that_somebody_is_told_to_install_exists():
    extras = set(_project()["optional-dependencies"])
    told = {
        (extra, path.name)
        for path in _texts()
        for names in re.findall(r"(?:haptera|'\.)\[([a-z,]+)\]", path.read_text("utf-8"))
        for extra in names.split(",")
    }
    assert told
    assert not {(extra, where) for extra, where in told if extra not in extras}


def _asked_extras() -> list[tuple[str, str]]:
    """Return module and extra of every call of `import_extra` that names both."""
    found = set()
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if (
                isinstance(node, ast.Call)
                and getattr(node.func, "attr", getattr(node.func, "id", "")) == "import_extra"
            ):
                words = [each.value for each in node.args[:2] if isinstance(each, ast.Constant)]
                found |= {(words[0], words[1])} if len(words) == 2 and words[1] else set()
    return sorted(found)


@pytest.mark.parametrize(("module", "extra"), _asked_extras())
def test_the_extra_that_an_error_names_brings_the_module(module, extra):
    package = module.partition(".")[0]
    brought = {re.match(r"[\w.-]+", each)[0] for each in _project()["optional-dependencies"][extra]}
    homes = packages_distributions().get(package, [package])
    assert {name.lower().replace("_", "-") for name in homes} & {name.lower() for name in brought}


@pytest.mark.long
@pytest.mark.parametrize("folder", ["tests", "examples"])
def test_a_clean_clone_has_what_tests_import(folder):
    homes, named = packages_distributions(), _named_requirements()
    for module, path in _imported_modules(folder).items():
        distributions = {name.lower().replace("_", "-") for name in homes.get(module, [])}
        assert not distributions or distributions & named, f"{path.name} imports {module}, which `dev` does not name"
