"""YAML files, such as the configurations of DeepLabCut: plain values only, with a limit on their size.

Needs PyYAML (`pip install 'haptera[pose]'`), whose safe loader makes numbers, texts, lists and mappings, and nothing
that could run code.
"""

from pathlib import Path
from typing import Any

from haptera.errors import HapteraError, first_line
from haptera.extras import import_extra
from haptera.files.atomic import check_plain_file

LARGEST = 2**22
"""Bytes; a configuration of DeepLabCut with a thousand videos has 200 kB."""


def read_yaml(path: Path) -> dict[str, Any]:
    """Return the keys and values of a file."""
    yaml = import_extra("yaml", "pose", f"reading {path.name}")
    if not path.is_file():
        raise HapteraError(f"there is no file {path}")
    if (size := check_plain_file(path)) > LARGEST:
        raise HapteraError(f"{path} has {size:,} bytes; {LARGEST:,} were expected at most")
    try:
        content = yaml.safe_load(path.read_text("utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError, OSError, RecursionError, ValueError) as error:
        raise HapteraError(f"cannot read {path} as YAML: {first_line(error)}") from error
    if not isinstance(content, dict):
        raise HapteraError(f"{path} holds a {type(content).__name__}; keys and values were expected")
    return content
