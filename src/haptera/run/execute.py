"""Where cells run: in this process, in processes on this machine, or on a Dask cluster.

Each way takes the same `work(index)` and yields `(index, failure)` in the order in which cells end; an empty failure
means the file of the cell is there. `work` is sent once to each worker, not once for each cell.
"""

import functools
import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, wait
from contextlib import suppress
from typing import Any

import cloudpickle

from haptera.errors import HapteraError, Unfinished, WriteError, first_line
from haptera.run.stopping import unheard

log = logging.getLogger("haptera")

PATIENCE, WORKERS = 10.0, 30.0
"""Seconds in which a Dask scheduler must answer, and in which it must have a worker."""

Work = Callable[[int], str]
Outcomes = Iterator[tuple[int, str]]


def in_this_process(work: Work, cells: Sequence[int]) -> Outcomes:
    """Run cells one after the other."""
    for index in cells:
        yield index, work(index)


def in_processes(work: Work, cells: Sequence[int], jobs: int) -> Outcomes:
    """Run cells on `jobs` processes with an equal share of the cores.

    When a process dies, the cells that were under way run again, each alone, so that only the one that takes its
    process down with it fails.
    """
    payload = _pickle(work)
    threads = max(1, (os.cpu_count() or 1) // jobs)
    queue = deque(cells)
    while queue:
        suspects: list[int] = []
        yield from _in_pool(payload, queue, jobs, threads, suspects)
        for index in suspects:
            dead: list[int] = []
            yield from _in_pool(payload, deque([index]), 1, threads, dead)
            for _ in dead:
                yield index, "its process died (killed, or out of memory)"


def _in_pool(payload: bytes, queue: deque[int], jobs: int, threads: int, dead: list[int]) -> Outcomes:
    """Take cells from the queue until it is empty or a process dies; what was under way then is in `dead`."""
    from loky import ProcessPoolExecutor
    from loky.process_executor import BrokenProcessPool

    with unheard():  # by the process that cleans up after others, too
        executor = ProcessPoolExecutor(jobs, initializer=_start, initargs=(payload, threads, os.getpid()))
    running: dict[Any, int] = {}
    try:
        while running or (queue and not dead):
            while queue and not dead and len(running) < 2 * jobs:
                index = queue.popleft()
                try:
                    with unheard():  # the first ones start the processes
                        running[executor.submit(_work, index)] = index
                except BrokenProcessPool:
                    dead.append(index)
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                index = running.pop(future)
                try:
                    yield index, future.result()
                except BrokenProcessPool:
                    dead.append(index)
    finally:
        # Processes that have nothing left to do end by themselves, and return what they took from the system.
        executor.shutdown(wait=True, kill_workers=bool(running or dead))


def on_cluster(work: Work, cells: Sequence[int], address: str) -> Outcomes:
    """Run cells on a Dask cluster, whose workers see the same folders; Dask moves a dead worker's cells to another."""
    try:
        from distributed import Client, as_completed
        from distributed.utils import silence_logging_cmgr
    except ImportError as error:
        raise HapteraError("--cluster needs Dask: pip install 'haptera[cluster]'") from error
    payload = _pickle(work)
    gone = f"the Dask scheduler at {address} is gone; what is finished is kept, and the same command goes on"
    with silence_logging_cmgr(logging.CRITICAL):  # it logs tracebacks of what is said below in a sentence
        client = _connect(Client, address)
        try:
            client.wait_for_workers(1, timeout=WORKERS)
            sent = client.scatter(payload, broadcast=True, hash=False)
            futures = {client.submit(_work_on_cluster, sent, index, pure=False): index for index in cells}
            for future, result in as_completed(futures, loop=client.loop, with_results=True, raise_errors=False):
                failed = future.status == "error"
                if failed and isinstance(result[1], WriteError):
                    raise result[1]
                if not failed and future.status != "finished":
                    raise Unfinished(gone)
                yield futures[future], f"its worker failed: {first_line(result[1])}" if failed else result
                future.release()
        except TimeoutError as error:
            raise HapteraError(f"the Dask scheduler at {address} has no workers") from error
        except (OSError, CancelledError) as error:
            raise Unfinished(gone) from error
        finally:
            with suppress(OSError, TimeoutError):
                client.close(timeout=1)


def _connect(client_class: Any, address: str) -> Any:
    """Return a client of a Dask scheduler."""
    # Made in two steps: a client that cannot start is then told so, or it would wait for itself when it is collected.
    client = client_class.__new__(client_class)
    try:
        client.__init__(address, timeout=PATIENCE, set_as_default=False)
    except Exception as error:  # of the network, of the protocol, of the address itself
        client.status = "closed"
        raise HapteraError(f"cannot reach a Dask scheduler at {address}: {first_line(error)}") from error
    return client


def _pickle(work: Work) -> bytes:
    try:
        return cloudpickle.dumps(work)
    except Exception as error:
        raise HapteraError(f"the study cannot be sent to other processes: {error}; use jobs=1") from error


@functools.cache
def _own() -> dict[str, Work]:
    """Return what this process, a worker that does nothing else, was started for."""
    return {}


def _start(payload: bytes, threads: int, parent: int) -> None:
    """Unpack the work once, take a share of the cores, and end when the parent does."""
    import torch

    torch.set_num_threads(threads)
    _own()["work"] = cloudpickle.loads(payload)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


def _work(index: int) -> str:
    return _own()["work"](index)


_one_at_a_time = threading.Lock()


@functools.lru_cache(maxsize=1)
def _unpack(payload: bytes) -> Work:
    """Unpack the work of a study when a worker of a cluster first sees it."""
    work: Work = cloudpickle.loads(payload)
    return work


def _work_on_cluster(payload: bytes, index: int) -> str:
    with _one_at_a_time:  # cells use all cores, and torch has one random generator per process
        return _unpack(payload)(index)
