"""Evidence by source: rows in `docs/evidence/sources/*.toml` become a page for each source and an overview of counts.

`python tools/evidence.py` writes the pages, `python tools/evidence.py --check` says which are not current, and
`python tools/evidence.py --older` names results that are older than the code that makes them.

A row is one claim, figure or table of a source: where it is, what it says, the printed value, ours, on which data, the
verdict, and the command that makes ours. `file` is where our value stands and `proof` what must be found there, blanks
aside: when a result is made again and says something else, the row is shown as "read again" until somebody has done so.
Decision 0013 says why, and when a result counts as older than its code.
"""

import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
SOURCES = ROOT / "docs" / "evidence" / "sources"
VERDICTS = ("confirmed", "not confirmed", "undecided", "not testable here", "not run yet", "read again")
MADE = "<!-- made by tools/evidence.py from {name}: edit that file, then run `make evidence` -->"
HEAD = """\
Every claim, figure and table that was looked at, with its verdict; a number of a source that has no row here was not
checked. [Decision 0013](../../decisions/0013-evidence-by-source.md) says how rows are kept true.
"""
LEGEND = """\
| verdict | what it means |
|---|---|
| confirmed | ours agrees with the print: the number on the source's own data, else the direction, beyond the interval |
| not confirmed | ours says something else, on the data that is named |
| undecided | too little data: the interval holds both answers |
| not testable here | the data or the networks are not to be had here |
| not run yet | the code is there, and nobody has run it |
| read again | our result has changed since somebody read it |
"""


@dataclass(frozen=True)
class Row:
    """One claim of a source, and what became of it."""

    where: str
    claim: str
    verdict: str
    printed: str = ""
    ours: str = ""
    data: str = ""
    interval: str = ""
    note: str = ""
    command: str = ""
    file: str = ""
    proof: tuple[str, ...] = ()

    def missing(self, root: Path = ROOT) -> list[str]:
        """Return the proofs that are not in the file."""
        if not self.file:
            return []
        path = root / self.file
        text = "".join(path.read_text("utf-8").split()) if path.is_file() else ""
        return [proof for proof in self.proof if "".join(proof.split()) not in text]

    def checked(self, root: Path = ROOT) -> str:
        """Return the verdict, or that somebody must read the result again."""
        return "read again" if self.missing(root) else self.verdict


@dataclass(frozen=True)
class Source:
    """A source, or a chapter of one: its rows, and the errors that were found in it."""

    name: str
    title: str
    about: str
    rows: tuple[Row, ...]
    errors: tuple[dict[str, str], ...]


def read(path: Path) -> Source:
    """Read the rows of one file; what all of them share stands under `defaults`."""
    content: dict[str, Any] = tomllib.loads(path.read_text("utf-8"))
    known = {field.name for field in fields(Row)}
    rows = []
    for number, entry in enumerate(content.get("rows", []), 1):
        unknown = set(entry) - known
        if unknown or entry.get("verdict") not in VERDICTS[:-1]:
            raise SystemExit(f"{path.name}, row {number}: {sorted(unknown) or entry.get('verdict')!r} is not known")
        shared = content.get("defaults", {}) if "ours" in entry else {}
        whole = {**shared, **entry}
        rows.append(Row(**{**whole, "proof": tuple(whole.get("proof", ()))}))
    return Source(path.stem, content["title"], content["about"], tuple(rows), tuple(content.get("errors", ())))


def sources(folder: Path = SOURCES) -> list[Source]:
    """Return every source, in the order of its file names."""
    return [read(path) for path in sorted(folder.glob("*.toml"))]


def page(source: Source, root: Path = ROOT) -> str:
    """Return the Markdown of one source."""
    commands = sorted({row.command for row in source.rows if row.command})
    letter = {command: f"{number})" for number, command in enumerate(commands, 1)}
    lines = [MADE.format(name=f"{source.name}.toml"), "", f"# {source.title}", "", source.about.strip(), ""]
    lines += [_counts_sentence(source, root), ""]
    lines += ["| where | claim | printed | ours | on | verdict | by |", "|---|---|---|---|---|---|---|"]
    for row in source.rows:
        ours = f"{row.ours} ({row.interval})" if row.interval else row.ours
        claim = f"{row.claim}. *{row.note}*" if row.note else row.claim
        verdict = row.checked(root)
        shown = f"**{verdict}**" if verdict in ("not confirmed", "read again") else verdict
        lines.append(_line(row.where, claim, row.printed, ours, row.data, shown, letter.get(row.command, "")))
    lines += ["", "Made by:", "", *(f"{number}. {_code(command)}" for number, command in enumerate(commands, 1)), ""]
    if source.errors:
        lines += ["## Errors in the source", "", "| where | printed | right | why |", "|---|---|---|---|"]
        lines += [_line(each["where"], each["printed"], each["right"], each["why"]) for each in source.errors]
        lines.append("")
    return "\n".join(lines)


def overview(all_sources: list[Source], root: Path = ROOT) -> str:
    """Return the Markdown that counts the verdicts, and names what was not confirmed."""
    lines = [MADE.format(name="*.toml"), "", "# By source", ""]
    lines += [HEAD, LEGEND]
    kinds = [kind for kind in VERDICTS if any(row.checked(root) == kind for each in all_sources for row in each.rows)]
    lines += [_line("source", *kinds, "rows", "errors found"), "|---" * (len(kinds) + 3) + "|"]
    total: Counter[str] = Counter()
    for source in all_sources:
        counts = Counter(row.checked(root) for row in source.rows)
        total += counts
        numbers = [str(counts[kind] or "–") for kind in kinds]
        name = f"[{source.title}]({source.name}.md)"
        lines.append(_line(name, *numbers, str(len(source.rows)), str(len(source.errors) or "–")))
    errors = sum(len(source.errors) for source in all_sources)
    lines.append(_line("**all**", *(f"**{total[kind]}**" for kind in kinds), f"**{total.total()}**", f"**{errors}**"))
    lines += ["", "## Not confirmed", "", "| source | where | claim | printed | ours |", "|---|---|---|---|---|"]
    for source, row in _rows(all_sources):
        if row.checked(root) == "not confirmed":
            name = f"[{source.title}]({source.name}.md)"
            lines.append(_line(name, row.where, row.claim, row.printed, row.ours))
    names = "\n".join(source.name for source in all_sources)
    lines += ["", "```{toctree}", ":hidden:", "", names, "```", ""]
    return "\n".join(lines)


def pages(folder: Path = SOURCES) -> dict[Path, str]:
    """Return every page that this script makes."""
    found = sources(folder)
    return {**{folder / f"{each.name}.md": page(each) for each in found}, folder / "index.md": overview(found)}


def _rows(all_sources: list[Source]) -> Iterator[tuple[Source, Row]]:
    for source in all_sources:
        for row in source.rows:
            yield source, row


def _counts_sentence(source: Source, root: Path) -> str:
    counts = Counter(row.checked(root) for row in source.rows)
    return f"{len(source.rows)} rows: " + ", ".join(f"{counts[kind]} {kind}" for kind in VERDICTS if counts[kind]) + "."


def _line(*cells: str) -> str:
    return "| " + " | ".join(re.sub(r"(?<!\\)\|", r"\\|", cell) for cell in cells) + " |"


def _code(command: str) -> str:
    return f"`{command}`"


def main(words: list[str]) -> int:
    """Write the pages, or say which are not current, or which results are older than their code."""
    if "--older" in words:
        sys.path.insert(0, str(ROOT / "docs" / "_ext"))
        from older import older_results

        for result, since in sorted(older_results().items()):
            print(f"{result}: older than {', '.join(since)}")
        return 0
    stale = [path for path, text in pages().items() if not path.is_file() or path.read_text("utf-8") != text]
    for path in stale:
        print(f"{path.relative_to(ROOT)} {'is not current' if '--check' in words else 'written'}")
        if "--check" not in words:
            path.write_text(pages()[path], "utf-8")
    for source, row in _rows(sources()):
        for proof in row.missing():
            print(f"{source.name}: {row.where}: {row.file} no longer says {proof!r}")
    return int(bool(stale) and "--check" in words)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
