"""Does the wheel work where nothing else of this clone is? Build it, install it into a clean environment, run the demo.

`python tools/wheel.py` is what `make wheel` runs. The new environment borrows the libraries of this one by a `.pth`
file, so that torch is not downloaded again. haptera itself is not borrowed: the environment's own packages come first,
and the script fails if it came from elsewhere.
"""

import json
import subprocess
import sys
import sysconfig
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]


def call(*words: str | Path, where: Path) -> str:
    """Run a command in a folder and return what it printed; its own message is the error."""
    done = subprocess.run([str(word) for word in words], cwd=where, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, words))}\n{done.stdout}{done.stderr}")
    return done.stdout


def main() -> None:
    """Build, install, use."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        call(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, ROOT, where=folder)
        [wheel] = folder.glob("haptera-*.whl")
        venv.create(folder / "clean", with_pip=True)
        python = folder / "clean" / "bin" / "python"
        call(python, "-m", "pip", "install", "--quiet", "--no-deps", wheel, where=folder)
        own = call(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", where=folder).strip()
        (Path(own) / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
        place = call(python, "-c", "import haptera; print(haptera.__file__)", where=folder).strip()
        if not place.startswith(own):
            raise SystemExit(f"haptera came from {place}, not from the wheel")
        haptera = folder / "clean" / "bin" / "haptera"
        version = call(haptera, "--version", where=folder).strip()
        said = json.loads(call(haptera, "demo", "--quick", "--quiet", "--json", "--out", "demo", where=folder))
        if said["failed"] or not (folder / said["report"]).is_file():
            raise SystemExit(f"the demo failed: {said}")
        print(f"{wheel.name} ({wheel.stat().st_size / 1e6:.1f} MB): {version}, {said['ran']} cells, a report")


if __name__ == "__main__":
    main()
