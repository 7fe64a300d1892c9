"""Code of one's own: the object behind `module:name` or `file.py:name`, as a person writes it.

It runs that code, so a name that was read from data never comes here (`haptera.catalog.find` is for those).
"""

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from haptera.errors import HapteraError, hint, unknown


def find_object(name: str, kind: str) -> Any:
    """The object behind `module:name` or `file.py:name`; `kind` is what error messages call it."""
    place, _, attribute = name.rpartition(":")
    if not place or not attribute:
        raise HapteraError(f"{kind} {name!r}: module:name or file.py:name was expected")
    module = find_module(place, kind)
    if not hasattr(module, attribute):
        raise unknown(f"name in {place}", attribute, [key for key in vars(module) if key[0] != "_"])
    return getattr(module, attribute)


def find_module(place: str, kind: str) -> ModuleType:
    """The module by its name or by its file."""
    return _from_file(Path(place), kind) if place.endswith(".py") else _by_name(place, kind)


def _by_name(name: str, kind: str) -> ModuleType:
    if (here := str(Path.cwd())) not in sys.path:  # a console script does not look there by itself
        sys.path.insert(0, here)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and (name == error.name or name.startswith(error.name + ".")):
            raise HapteraError(f"{kind}: there is no module {name!r}") from error
        raise HapteraError(f"{kind}: {name} needs {error.name!r}, which is not installed") from error
    except Exception as error:
        raise HapteraError(f"{kind}: importing {name} failed: {type(error).__name__}: {error}") from error


def _from_file(path: Path, kind: str) -> ModuleType:
    import cloudpickle

    if not path.is_file():
        beside = [file.name for file in path.parent.glob("*.py")] if path.parent.is_dir() else []
        raise HapteraError(f"{kind}: there is no file {path};{hint(path.name, beside)}".rstrip(";"))
    path = path.resolve()
    spec = importlib.util.spec_from_file_location(f"_file_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where inspect and pickle look for its classes
    sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[spec.name]
        raise HapteraError(f"{kind}: importing {path} failed: {type(error).__name__}: {error}") from error
    finally:
        sys.path.remove(str(path.parent))
    cloudpickle.register_pickle_by_value(module)  # other processes cannot import it by name
    return module
