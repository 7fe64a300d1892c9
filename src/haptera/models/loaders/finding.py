"""Which loader a name leads to: by its prefix, by the ending of a file, or by what a folder holds."""

from pathlib import Path
from types import ModuleType

from haptera import catalog, extras
from haptera.errors import HapteraError

SUFFIXES = {".onnx": "onnx", ".pt2": "export", ".ts": "jit", ".torchscript": "jit"}
"""Ending of a file -> the loader that reads it, where no prefix is given."""
FILES = frozenset(SUFFIXES.values())
PICKLES = (".pt", ".pth", ".bin", ".ckpt", ".safetensors")
FOLDER, CONFIG = "hf", "config.json"
FOLDERS = (FOLDER, "zeroshot")
"""Loaders whose text is a folder, or a name on a hub."""


def split_name(name: str, folder: Path = Path()) -> tuple[str, str]:
    """Return the loader of a name and the text for it; no loader for names of the catalog and for functions.

    Args:
        name: as a person wrote it.
        folder: what paths in it are relative to.

    >>> split_name("timm:resnet50"), split_name("nets/a.onnx"), split_name("net.py:build")
    (('timm', 'resnet50'), ('onnx', 'nets/a.onnx'), ('', 'net.py:build'))
    """
    prefix, colon, rest = name.partition(":")
    if colon and prefix in catalog.entries("loaders"):
        if not rest:
            raise HapteraError(f"model {name!r} says nothing after its prefix; {prefix}:... was expected")
        return prefix, rest
    path = Path(name)
    if (suffix := path.suffix.lower()) in SUFFIXES:
        return SUFFIXES[suffix], name
    if (folder / path / CONFIG).is_file():
        return FOLDER, name
    if suffix in PICKLES:
        raise HapteraError(
            f"model {name!r} is a file of weights; the function that builds the network was expected, such as "
            f"--model net.py:build --weights {name} (jit:{name} if it is TorchScript)"
        )
    return "", name


def locate(name: str, folder: Path) -> str:
    """Return the name of a model whose paths were relative to a folder, and are now as seen from here.

    >>> locate("net.onnx", Path("nets")), locate("timm:resnet50", Path("nets")), locate("net.py:build", Path("nets"))
    ('onnx:nets/net.onnx', 'timm:resnet50', 'nets/net.py:build')
    """
    loader, text = split_name(name, folder)
    before = f"{loader}:" if loader else ""
    place, colon, last = text.rpartition(":")
    if loader in FILES:
        return before + _join(folder, text)
    if loader in FOLDERS and _is_folder(text, folder):
        return before + _join(folder, text)
    if place.endswith(".py") or (loader == "hub" and _is_folder(place, folder)):
        return before + _join(folder, place) + colon + last
    return before + text


def call(name: str) -> str:
    """Return what a model is called in tables where nobody says it: its file, folder, entry or function.

    >>> call("hf:microsoft/resnet-50"), call("nets/net.onnx"), call("hub:repo:small"), call("net.py:build")
    ('resnet-50', 'net', 'small', 'net')
    """
    loader, text = split_name(name)
    place, _, last = text.rpartition(":")
    if loader in FILES or place.endswith(".py"):
        return Path(place or text).stem
    return last.rpartition("/")[2] if loader else last


def _join(folder: Path, text: str) -> str:
    return text if text.startswith("~") else str(folder / text)


def _is_folder(text: str, folder: Path) -> bool:
    """Say whether a text that may be a name on a hub is a folder."""
    return text.startswith((".", "/", "~")) or Path(text).is_dir() or (folder / text).is_dir()


def import_extra(module: str, extra: str, what: str) -> ModuleType:
    """Return a module that not everybody has, or say how to get it.

    Args:
        module: its name.
        extra: the extra of haptera that brings it; empty for a package that none does.
        what: needs it, such as `timm:resnet50`.
    """
    return extras.import_extra(module, extra, f"model {what}")
