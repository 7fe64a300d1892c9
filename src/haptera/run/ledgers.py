"""Ledgers of any kind: those inside a folder, and how far one of them came."""

from pathlib import Path

from haptera.run.folder import PLAN
from haptera.run.ledger import Ledger


def ledgers_in(folder: Path) -> list[Ledger]:
    """Return the ledgers of a folder and of those inside it, of which there must be one."""
    inside = sorted(path.parent for path in folder.rglob(PLAN) if path.parent != folder)
    own = [folder] if (folder / PLAN).is_file() or not inside else []
    return [Ledger.open(each) for each in own + inside]


def how_far(folder: Path) -> str:
    """Return a text such as ` after 3 of 8 pieces`, for a folder of any kind; nothing where there is no plan."""
    return Ledger.open(folder).how_far() if (folder / PLAN).is_file() else ""
