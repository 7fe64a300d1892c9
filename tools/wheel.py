"""Does the wheel work where nothing else of this clone is? Build it, install it into a clean environment, run the demo.

    python tools/wheel.py [PYTHON ...]

is what `make wheel` runs. Without a Python the new environment is of this one and borrows its libraries by a `.pth`
file, so that torch is not downloaded again. haptera itself is not borrowed: the environment's own packages come first,
and the script fails if it came from elsewhere. With other Pythons, such as `python3.13`, each gets an environment into
which pip installs everything, some gigabytes: `make wheel PYTHONS="python3.12 python3.13"`.
"""

import json
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]


def call(*words: str | Path, where: Path) -> str:
    """Run a command in a folder and return what it printed; its own message is the error."""
    done = subprocess.run([str(word) for word in words], cwd=where, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, words))}\n{done.stdout}{done.stderr}")
    return done.stdout


def build(folder: Path) -> Path:
    """Return the wheel of this clone."""
    call(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, ROOT, where=folder)
    [wheel] = folder.glob("haptera-*.whl")
    return wheel


def install(wheel: Path, interpreter: str | None, folder: Path) -> Path:
    """Return the folder of programs of a new environment with the wheel in it."""
    call(interpreter or sys.executable, "-m", "venv", folder / "clean", where=folder)
    programs = folder / "clean" / "bin"
    pip = [programs / "python", "-m", "pip", "install", "--quiet"]
    call(*pip, *([] if interpreter else ["--no-deps"]), wheel, where=folder)
    own = call(
        programs / "python", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", where=folder
    ).strip()
    if not interpreter:
        (Path(own) / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    place = call(programs / "python", "-c", "import haptera; print(haptera.__file__)", where=folder).strip()
    if not place.startswith(own):
        raise SystemExit(f"haptera came from {place}, not from the wheel")
    return programs


def use(programs: Path, folder: Path) -> str:
    """Return what was seen when the demo was run."""
    version = call(programs / "haptera", "--version", where=folder).strip()
    python = call(programs / "python", "--version", where=folder).strip()
    said = json.loads(call(programs / "haptera", "demo", "--quick", "--quiet", "--json", "--out", "demo", where=folder))
    if said["failed"] or not (folder / said["report"]).is_file():
        raise SystemExit(f"the demo failed: {said}")
    return f"{python}: {version}, {said['ran']} cells, a report"


def main(interpreters: list[str]) -> None:
    """Build, install, use."""
    with tempfile.TemporaryDirectory() as name:
        wheel = build(Path(name))
        print(f"{wheel.name} ({wheel.stat().st_size / 1e6:.1f} MB)", flush=True)
        for place, interpreter in enumerate(interpreters or [None]):
            folder = Path(name) / str(place)
            folder.mkdir()
            print(use(install(wheel, interpreter, folder), folder), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
