"""How long it takes to import the package and to answer `--help`, here and in another checkout, side by side.

    python benchmarks/imports.py [OTHER] [--rounds 7]

OTHER is the root of another checkout, whose package may have another name. Every measurement is a process of its own,
with one thread, the checkouts by turns; the least of all rounds counts, in milliseconds of wall-clock time. Commands
are asked for by `--help`, so that both checkouts need nothing but their source.
"""

import argparse
import os
import re
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parents[1]


def package_of(root: Path) -> str:
    """Return the name of the one package in `src`."""
    names = [path.parent.name for path in (root / "src").glob("*/__init__.py")]
    if len(names) != 1:
        sys.exit(f"{root / 'src'} holds {len(names)} packages; exactly one was expected")
    return names[0]


def run(root: Path, *arguments: str) -> str:
    """Run Python on the source of a checkout; return what it printed."""
    environment = os.environ | {"PYTHONPATH": str(root / "src"), "OMP_NUM_THREADS": "1", "COLUMNS": "120"}
    command = [sys.executable, *arguments]
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout


def cases_of(root: Path) -> dict[str, list[str]]:
    """Return what is measured in a checkout: a name that all checkouts share -> arguments of Python."""
    package = package_of(root)
    commands = re.findall(r"^│ ([a-z]+) ", run(root, "-m", package, "--help"), re.MULTILINE)
    cases = {
        "import the package": ["-c", f"import {package}"],
        "--help": ["-m", package, "--help"],
        "list": ["-m", package, "list"],
    }
    return cases | {f"{command} --help": ["-m", package, command, "--help"] for command in commands}


def milliseconds(root: Path, arguments: list[str]) -> float:
    """Return the time of one process."""
    start = time.perf_counter()
    run(root, *arguments)
    return 1000 * (time.perf_counter() - start)


def main(roots: list[Path], rounds: int) -> None:
    cases = {root: cases_of(root) for root in roots}
    names = list(dict.fromkeys(name for own in cases.values() for name in own))
    least: dict[tuple[str, Path], float] = {}
    for _ in range(rounds):
        for name in names:
            for root in roots:
                if name in cases[root]:
                    taken = milliseconds(root, cases[root][name])
                    least[name, root] = min(taken, least.get((name, root), taken))
    width = max(map(len, names)) + 2
    print(
        f"{'milliseconds':<{width}}"
        + "".join(f"{name:>12}" for name in (["before", "after"] if len(roots) == 2 else ["here"]))
        + f"{'ratio':>9}"
    )
    for name in names:
        values = [least.get((name, root)) for root in roots]
        words = "".join(f"{'-' if value is None else f'{value:.0f}':>12}" for value in values)
        ratio = f"{values[-1] / values[0]:>9.2f}" if len(roots) == 2 and None not in values else ""
        print(f"{name:<{width}}{words}{ratio}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("other", nargs="?", type=Path, help="the root of another checkout, shown in the first column")
    parser.add_argument("--rounds", type=int, default=7)
    given = parser.parse_args()
    main([*([given.other.resolve()] if given.other else []), HERE], given.rounds)
