"""Tutorials: run every notebook of `docs/tutorials` and write what its cells show into it.

`python tools/notebooks.py [NAME ...]` runs the notebooks, each in a temporary folder; `make notebooks` runs all. The
site and code hosts show what is stored, so nothing runs when the site is built; `tests/tools/test_notebooks.py` runs
them again and compares. A warning is an error, as in the tests.
"""

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
TUTORIALS = ROOT / "docs" / "tutorials"
PATIENCE = 1200
"""Seconds a cell may take, on a machine that does much else."""


def run(path: Path, folder: Path) -> Any:
    """Return a notebook with what its cells show when it is run in a folder; the first error is raised."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    paths = [str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {"PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "error::UserWarning"}
    client = NotebookClient(notebook, timeout=PATIENCE, record_timing=False, resources={"metadata": {"path": folder}})
    return client.execute(env=os.environ | environment)


def refresh(path: Path) -> None:
    """Run a notebook and store what it shows."""
    import nbformat

    with tempfile.TemporaryDirectory() as folder:
        notebook = run(path, Path(folder))
    notebook.metadata["language_info"] = {"name": "python"}  # the version of this machine is nobody's business
    nbformat.write(notebook, path)


if __name__ == "__main__":
    for name in sys.argv[1:] or sorted(path.stem for path in TUTORIALS.glob("*.ipynb")):
        print(name, flush=True)
        refresh(TUTORIALS / f"{name}.ipynb")
