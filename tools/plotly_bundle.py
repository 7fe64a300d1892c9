"""Fetch the partial bundle of plotly.js that pages carry, and write it into the package, compressed.

    python tools/plotly_bundle.py 4.1.1

npm gets `plotly.js-cartesian-dist-min` in that version; its file goes unchanged, but compressed, to
`src/haptera/report/static/plotly-cartesian.min.js.gz`. The same version gives the same bytes. Decision 14 says why a
bundle is committed; take the version of the full bundle in the installed Python package, which pages with points in
space carry.
"""

import gzip
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

PACKAGE, MEMBER = "plotly.js-cartesian-dist-min", "package/plotly-cartesian.min.js"
TARGET = Path(__file__).parents[1] / "src" / "haptera" / "report" / "static" / "plotly-cartesian.min.js.gz"


def main(version: str) -> None:
    """Write the bundle of a version."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["npm", "pack", "--silent", f"{PACKAGE}@{version}"]
        name = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout.strip()
        with tarfile.open(Path(folder, name.splitlines()[-1])) as archive:
            found = archive.extractfile(MEMBER)
            if found is None:
                raise SystemExit(f"{name} has no file {MEMBER}")
            content = found.read()
    TARGET.write_bytes(gzip.compress(content, 9, mtime=0))
    print(f"{TARGET}: {len(content):,} bytes, {TARGET.stat().st_size:,} compressed")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit("usage: python tools/plotly_bundle.py VERSION")
    main(sys.argv[1])
