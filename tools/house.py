"""How the house stands: files, lines, rooms and what they import, long files and functions, duplicates, as a table.

    python tools/house.py [ROOT ...] [--details]

ROOT is a checkout, by default this one; its package is the one folder of `src` with an `__init__.py`, whatever it is
called. Several checkouts stand side by side, and `--details` names what was counted in the last. Only Python files of
the package count, read by `ast`; nothing is imported.

- A line of code is a line that holds more than blanks, a comment or a docstring.
- A room is a folder of the package. A module that stands beside the folders counts as a room of its own where rooms
  import each other. An edge is a pair of rooms of which one imports the other, inside functions too, but not for types
  alone (`if TYPE_CHECKING`). A cycle is a group of rooms each of which can be reached from each other.
- The lines of a function run from `def` to its end, docstring included; `self` and `cls` are not parameters.
- A duplicate run is six lines of code or more, in a row, that stand somewhere else as well; each place after the first
  counts once. Import statements are left out.
- Lines that present analyses are the lines of code of the files that `PRESENTING` names: the commands of the eight
  analyses with their options, their pages with the frames behind figures, their summaries, findings and numbers, and
  what they share for it.
"""

import ast
import io
import sys
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from pathlib import Path

LONG_FILE, LONG_FUNCTION, MANY_PARAMETERS, RUN = 300, 60, 10, 6
ANALYSES = [
    "attribute",
    "attribution",
    "dependencies",
    "diagnose",
    "diagnosis",
    "embed",
    "embedding",
    "identify",
    "pose",
    "stability",
    "trends",
]
PARTS = ("page", "frames", "summary", "findings", "numbers", "settings")
PRESENTING = (
    "analysis.py",  # the base of every analysis: summary, JSON, page
    "cli/present.py",
    "cli/options.py",
    *(f"cli/{name}{more}.py" for name in ANALYSES for more in ("", "_options")),
    *(f"report/{name}{more}.py" for name in ANALYSES for more in ("", "_*")),
    *(f"{name}/{part}{more}.py" for name in ANALYSES for part in PARTS for more in ("", "_*")),
    *(f"analyses/*/{part}{more}.py" for part in PARTS for more in ("", "_*")),
)
"""Patterns of paths inside the package, the same for every checkout."""
OTHERS = ("report/stability_study.py", "pose/frames.py")
"""Files that the patterns match by name only: a section of a study's page, and the reader of video frames."""


@dataclass(frozen=True)
class Function:
    """A function or method: where it is, its lines, and how many parameters it has."""

    place: str
    lines: int
    parameters: int


@dataclass(frozen=True, eq=False)
class Source:
    """One file of the package."""

    path: Path
    name: str
    """The path inside the package, such as `run/ledger.py`."""

    @cached_property
    def text(self) -> str:
        """Return what the file holds."""
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def tree(self) -> ast.Module:
        """Return the file as Python reads it."""
        return ast.parse(self.text)

    @cached_property
    def lines(self) -> int:
        """Count all lines."""
        return len(self.text.splitlines())

    @cached_property
    def code(self) -> dict[int, str]:
        """Return the lines of code by their number, without blanks at their ends."""
        kept: set[int] = set()
        layout = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
        for token in tokenize.generate_tokens(io.StringIO(self.text).readline):
            if token.type not in layout:
                kept.update(range(token.start[0], token.end[0] + 1))
        kept -= {line for node in _docstrings(self.tree) for line in _span(node)}
        lines = self.text.splitlines()
        return {number: lines[number - 1].strip() for number in sorted(kept)}

    @cached_property
    def functions(self) -> list[Function]:
        """Return every function and method."""
        return [
            Function(f"{self.name}:{node.lineno} {node.name}", len(_span(node)), _parameters(node.args))
            for node in ast.walk(self.tree)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        ]

    def imports(self, package: str) -> set[str]:
        """Return the modules of the package that this file imports, as dotted names inside the package."""
        named: set[str] = set()
        for node in _importing(self.tree):
            if isinstance(node, ast.Import):
                named |= {alias.name for alias in node.names}
            elif node.module:
                named |= {f"{node.module}.{alias.name}" for alias in node.names}
        return {name.removeprefix(f"{package}.") for name in named if name.startswith(f"{package}.")}


class House:
    """The package of a checkout."""

    def __init__(self, root: Path) -> None:
        found = [path.parent for path in sorted((root / "src").glob("*/__init__.py"))]
        if len(found) != 1:
            sys.exit(f"{root / 'src'} holds {len(found)} packages; a checkout with exactly one was expected")
        self.folder = found[0]
        self.package = self.folder.name
        paths = sorted(path for path in self.folder.rglob("*.py") if "__pycache__" not in path.parts)
        self.sources = [Source(path, path.relative_to(self.folder).as_posix()) for path in paths]

    @cached_property
    def rooms(self) -> set[str]:
        """Return the folders that hold code."""
        return {source.name.split("/")[0] for source in self.sources if "/" in source.name}

    @cached_property
    def edges(self) -> set[tuple[str, str]]:
        """Return which room imports which; modules beside the folders are rooms here."""
        known = self.rooms | {source.name.removesuffix(".py") for source in self.sources if "/" not in source.name}
        pairs = {
            (source.name.split("/")[0].removesuffix(".py"), name.split(".")[0])
            for source in self.sources
            for name in source.imports(self.package)
        }
        outside = {"__init__", "__main__"}  # what everybody sees of the package, and what starts it
        return {(one, other) for one, other in pairs if one != other and other in known and one not in outside}

    @cached_property
    def cycles(self) -> list[set[str]]:
        """Return the groups of rooms that import each other, the largest first."""
        after: dict[str, set[str]] = defaultdict(set)
        for one, other in self.edges:
            after[one].add(other)
        reached = {one: _reachable(one, after) for one in sorted(after)}
        groups = {frozenset(other for other in reached[one] if one in reached.get(other, ())) for one in reached}
        return sorted((set(group) for group in groups if group), key=len, reverse=True)

    @cached_property
    def presenting(self) -> list[Source]:
        """Return the files that present analyses."""
        kept = [source for source in self.sources if source.name not in OTHERS]
        return [source for source in kept if any(_matches(source.name, pattern) for pattern in PRESENTING)]

    @cached_property
    def duplicates(self) -> list[str]:
        """Return the places of runs of code that stand somewhere before."""
        seen: set[tuple[str, ...]] = set()
        found = []
        for source in self.sources:
            imports = {line for node in _importing(source.tree) for line in _span(node)}
            code = [(number, line) for number, line in source.code.items() if number not in imports]
            again = []
            for first in range(len(code) - RUN + 1):
                window = tuple(line for _, line in code[first : first + RUN])
                again.append(window in seen)
                seen.add(window)
            first = 0
            for repeated, group in groupby(again):
                if repeated:
                    found.append(f"{source.name}:{code[first][0]}")
                first += len(list(group))
        return found

    def table(self) -> dict[str, int]:
        """Return what is counted, by its name."""
        functions = [function for source in self.sources for function in source.functions]
        return {
            "files": len(self.sources),
            "lines": sum(source.lines for source in self.sources),
            "lines of code": sum(len(source.code) for source in self.sources),
            "rooms": len(self.rooms),
            "edges between rooms": len(self.edges),
            "cycles of rooms": len(self.cycles),
            "rooms in a cycle": sum(map(len, self.cycles)),
            f"files over {LONG_FILE} lines": sum(source.lines > LONG_FILE for source in self.sources),
            f"functions over {LONG_FUNCTION} lines": sum(each.lines > LONG_FUNCTION for each in functions),
            f"functions over {MANY_PARAMETERS} parameters": sum(
                each.parameters > MANY_PARAMETERS for each in functions
            ),
            "lines that present analyses": sum(len(source.code) for source in self.presenting),
            f"duplicate runs of {RUN} lines": len(self.duplicates),
        }

    def details(self) -> Iterator[str]:
        """Yield which ones: the cycles, long files and functions, and duplicates."""
        yield from (f"cycle: {', '.join(sorted(cycle))}" for cycle in self.cycles)
        for source in self.sources:
            if source.lines > LONG_FILE:
                yield f"{source.name}: {source.lines} lines"
            for each in source.functions:
                if each.lines > LONG_FUNCTION:
                    yield f"{each.place}: {each.lines} lines"
                if each.parameters > MANY_PARAMETERS:
                    yield f"{each.place}: {each.parameters} parameters"
        yield from (f"presents analyses: {source.name}, {len(source.code)} lines of code" for source in self.presenting)
        yield from (f"duplicate run: {place}" for place in self.duplicates)


def _matches(name: str, pattern: str) -> bool:
    """Whether a path is one that the pattern names; `*` stands for anything but a slash."""
    parts, wanted = name.split("/"), pattern.split("/")
    return len(parts) == len(wanted) and all(Path(part).match(want) for part, want in zip(parts, wanted, strict=True))


def _span(node: ast.AST) -> range:
    return range(node.lineno, node.end_lineno + 1)  # type: ignore[attr-defined]


def _docstrings(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield texts that stand alone as statements, as docstrings of modules, classes, functions and attributes do."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node


def _parameters(arguments: ast.arguments) -> int:
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
    return sum(each is not None and each.arg not in ("self", "cls") for each in every)


def _importing(node: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    """Yield import statements, those for types alone left out."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
            continue
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child
        else:
            yield from _importing(child)


def _reachable(start: str, after: dict[str, set[str]]) -> set[str]:
    """Return the rooms that can be reached from one; itself only by a way back."""
    found: set[str] = set()
    ahead = list(after[start])
    while ahead:
        room = ahead.pop()
        if room not in found:
            found.add(room)
            ahead += after.get(room, ())
    return found


def show(houses: list[House]) -> str:
    """Return the tables of several checkouts side by side; two of them are before and after."""
    tables = [house.table() for house in houses]
    names = ["before", "after"] if len(houses) == 2 else [house.package for house in houses]
    lines = [f"{'':<32}" + "".join(f"{name:>12}" for name in names)]
    lines += [f"{name:<32}" + "".join(f"{table[name]:>12,}" for table in tables) for name in tables[0]]
    return "\n".join(lines)


def main(arguments: list[str]) -> None:
    """Print the table of each checkout that is named, or of this one; with `--details`, which ones of the last."""
    roots = [Path(each) for each in arguments if not each.startswith("-")] or [Path(__file__).parents[1]]
    houses = [House(root) for root in roots]
    print(show(houses))
    if "--details" in arguments:
        print("", *houses[-1].details(), sep="\n")


if __name__ == "__main__":
    main(sys.argv[1:])
