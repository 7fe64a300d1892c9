"""Stopping: Ctrl-C, a terminal that closes (SIGHUP) and a scheduler that takes its machine back (SIGTERM) end alike.

The first of them is a `KeyboardInterrupt` wherever the program is, so that files are closed and half-written ones
removed; later ones are ignored while that happens. What a library makes of the interruption on its way up (an
ImportError, if it was importing) is not shown: the command ends with 130 and one line.
Light, for it comes before every other import.
"""

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
CODE = 130


class _State:
    listening = False
    asked = False
    said = False


def say_stopped(how_to_go_on: str = "") -> None:
    """Say, once, that the program was stopped."""
    if not _State.said:
        _State.said = True
        print(f"error: stopped{how_to_go_on}", file=sys.stderr, flush=True)  # noqa: T201


@contextmanager
def ending_quietly() -> Iterator[None]:
    """End the process with 130 and one line when it is stopped inside the block; never with a traceback."""
    if _State.listening or threading.current_thread() is not threading.main_thread():
        yield  # signals are heard by the main thread alone
        return
    _State.listening, _State.asked, _State.said = True, False, False
    before = {each: signal.getsignal(each) for each in STOPS}
    for each, handler in before.items():
        if handler is not signal.SIG_IGN:  # as under nohup
            signal.signal(each, _stop)
    try:
        yield
    except BaseException as error:
        if not _State.asked and not isinstance(error, KeyboardInterrupt):
            raise
        say_stopped()
        sys.exit(CODE)
    finally:
        _State.listening = False
        for each, handler in before.items():
            signal.signal(each, handler)


def _stop(number: int, frame: FrameType | None) -> None:
    if not _State.asked:
        _State.asked = True
        raise KeyboardInterrupt


@contextmanager
def unheard() -> Iterator[None]:
    """Keep signals from processes that are started inside the block; who started them hears, and ends them."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOPS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
