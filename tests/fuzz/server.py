"""A process that has everything imported and forks a child for each case, which reads one damaged sample under limits.

A line of JSON on stdin, `{"reader": name, "seed": number}`, is answered by one on stdout, the outcome.
"""

import json
import os
import re
import resource
import select
import shutil
import signal
import sys
import tempfile
import traceback
from pathlib import Path
from random import Random

SECONDS = 20
PATIENCE = 60
"""Seconds of a clock, where `SECONDS` are those of the processor: a machine may have other things to do."""
MEMORY = 1_500_000_000


def main() -> None:
    """Answer until stdin ends."""
    from tests.fuzz.samples import READERS

    base = _memory()
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what a reader prints is not an answer
    with tempfile.TemporaryDirectory() as place:
        for line in sys.stdin:
            job = json.loads(line)
            sample = Path(place) / job["reader"]
            if not sample.exists():
                sample.mkdir()
                READERS[job["reader"]].write(sample)
            outcome = _in_child(READERS[job["reader"]].read, sample, job.get("seed"), base)
            answers.write(json.dumps(job | outcome) + "\n")
            answers.flush()


def _in_child(read, sample: Path, seed: int | None, base: int) -> dict[str, str]:
    receive, send = os.pipe()
    case = Path(tempfile.mkdtemp(prefix="case-", dir=sample.parent))
    child = os.fork()
    if not child:
        os.close(receive)
        with os.fdopen(send, "w") as pipe:
            json.dump(_outcome(read, sample, case / "damaged-sample", seed, base), pipe)
        os._exit(0)
    os.close(send)
    with os.fdopen(receive) as pipe:
        answered = select.select([pipe], [], [], PATIENCE)[0]
        text = pipe.read() if answered else ""
    if not answered:
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    shutil.rmtree(case, ignore_errors=True)
    if text:
        return json.loads(text)
    slow = not answered or (os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXCPU)
    return {"outcome": "hang" if slow else "crash", "said": f"status {status}"}


def _outcome(read, sample: Path, case: Path, seed: int | None, base: int) -> dict[str, str]:
    """What becomes of one case: `read`, `refused`, or what must not be."""
    from tests.fuzz.mutate import mutate

    from haptera.errors import HapteraError

    shutil.copytree(sample, case)
    change = mutate(case, Random(seed)) if seed is not None else "nothing"
    os.chdir(case)
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 5))
    resource.setrlimit(resource.RLIMIT_DATA, (base + MEMORY, base + MEMORY))
    errors = case.parent / "stderr"
    with open(errors, "w") as file:
        os.dup2(file.fileno(), 2)
        sys.stderr = file
        try:
            code = read(case)
            outcome, said = {None: ("read", ""), 0: ("read", ""), 1: ("skipped", ""), 2: ("refused", "")}.get(
                code, ("exit", str(code))
            )
        except HapteraError as error:
            outcome, said = "refused", str(error)
        except BaseException:
            outcome, said = "traceback", traceback.format_exc()
    printed = errors.read_text(errors="replace")
    if "Traceback" in printed:
        outcome, said = "traceback", printed
    said = said or printed
    names = {path.name for path in sample.rglob("*")} | {case.name}
    if outcome == "refused" and not any(name in said for name in names):
        outcome = "unnamed"
    return {"outcome": outcome, "said": said[-3000:], "change": change}


def _memory() -> int:
    """Bytes of data that this process has now."""
    return 1024 * int(re.search(r"VmData:\s+(\d+)", Path("/proc/self/status").read_text())[1])


if __name__ == "__main__":
    main()
