"""Collection: plans and journals of large studies are many objects without cycles, among which none need be looked for.

Python looks for cycles again and again while objects become more, which is a fifth of the time that a study of 100,000
cells takes to be planned.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Leave cycles where they are inside the block, in all threads."""
    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if before:
            gc.enable()
