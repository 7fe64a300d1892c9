"""What a report weighs, and what it would weigh with other ways to draw: the numbers of decision 14.

    python benchmarks/page_size.py [REPORT]

Without a report that of the quick demo is made. Bytes are counted in the page as it is written, which carries plotly.js
compressed; the other rows put its other scripts, or none, into the same page. "Without any" is the least that a page
could weigh if charts were drawn by code of our own, which has to be added to it.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

from haptera.report.scripts import PLANE, page_scripts, plotly_packed, plotly_script

RESULT = Path(__file__).parents[1] / "docs" / "evidence" / "results" / "page_size.txt"
DATA_URI = re.compile(rb"data:image/(?:png|jpeg|webp);base64,[A-Za-z0-9+/=]+")
FRAME = re.compile(rb'<script type="application/(?:json|gzip)" id="[^"]*-data">.*?</script>', re.DOTALL)


def describe(page: Path) -> list[str]:
    """Return a line for each part of a page, and for each other way to draw."""
    content = page.read_bytes()
    plane, space = (len(plotly_packed(bundle)) for bundle in ("plane", "space"))
    flat, whole = (len(plotly_script(bundle).encode()) for bundle in ("plane", "space"))
    own = sum(len(text.encode()) for text in page_scripts("none").values())
    images = sum(map(len, DATA_URI.findall(content)))
    frames = sum(map(len, FRAME.findall(content)))
    without = len(content) - plane
    rows = {
        "the page": len(content),
        "  plotly.js for charts in a plane, packed": plane,
        "  our own scripts": own,
        "  images": images,
        "  numbers behind figures and tables": frames,
        "  all else": without - own - images - frames,
        "the page with all of plotly.js, packed": without + space,
        "the page with the bundle as it is": without + flat,
        "the page with all of plotly.js as it is": without + whole,
        "the page without any": without,
        "the bundle as it is committed": PLANE.stat().st_size,
    }
    return [f"{name:44s} {size / 1e6:5.2f} MB" for name, size in rows.items()]


def main(words: list[str]) -> None:
    if words:
        lines = describe(Path(words[0]))
    else:
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-m", "haptera", "demo", "--quick", "--quiet", "--json", "--out", folder]
            subprocess.run(command, capture_output=True, check=True)
            lines = ["The report of `haptera demo --quick`", *describe(Path(folder) / "report.html")]
        RESULT.write_text("\n".join(lines) + "\n", "utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main(sys.argv[1:])
