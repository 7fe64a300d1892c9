"""Packages that not everybody has: imported where they are used, and one sentence where they are missing."""

import importlib
import logging
from collections.abc import Callable
from functools import cache
from types import ModuleType
from typing import Any

from haptera.errors import HapteraError, first_line

log = logging.getLogger("haptera")


def import_extra(module: str, extra: str, what: str) -> ModuleType:
    """Return a module that not everybody has, or say how to get it.

    Args:
        module: its name.
        extra: the extra of haptera that brings it; empty for a package that none does.
        what: needs it, such as `export mlflow`.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        if isinstance(error, ModuleNotFoundError) and (error.name or "").partition(".")[0] == package:
            how = f"pip install 'haptera[{extra}]'" if extra else f"pip install {package}"
            raise HapteraError(f"{what} needs {package}, which is not installed: {how}") from error
        raise HapteraError(f"{what} needs {package}, which does not import here: {error}") from error
    except Exception as error:  # such as a library that was built for another version of torch
        raise HapteraError(f"{what} needs {module}, which does not import here: {error}") from error


def import_loops(module: str, without: str) -> ModuleType | None:
    """Return compiled loops; None, and a line in the log, where numba is missing or does not import.

    Args:
        module: its name.
        without: what happens then, in words.
    """
    try:
        loops = importlib.import_module(module)
        if compiles():
            return loops
        log.info("%s, since NUMBA_DISABLE_JIT turns the compiler off", without)
    except Exception as error:  # numba refuses a NumPy that is too new, or fails in its own libraries, in many ways
        log.info("%s, since numba does not import: %s", without, first_line(error))
    return None


def compiles() -> bool:
    """Whether numba is here and compiles; without it loops would be slow, or are not there."""
    try:
        import numba
    except Exception:  # see above
        return False
    return not getattr(numba.config, "DISABLE_JIT", False)


def compile_loop(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """Compile a loop with numba when it is first called, and keep it on disk where there is a folder to write into."""
    import numba

    try:
        compiled: Callable[..., Any] = numba.njit(cache=True, nogil=True, error_model="numpy", **options)(function)
    except RuntimeError:  # neither the package's folder nor the user's can be written into
        _say_unkept()
        compiled = numba.njit(nogil=True, error_model="numpy", **options)(function)
    return compiled


@cache
def _say_unkept() -> None:
    log.info("loops are compiled anew in each process; NUMBA_CACHE_DIR may name a folder to keep them in")
