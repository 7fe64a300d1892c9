"""The header of a safetensors file: JSON that is written beside tensors, and read without torch."""

from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from haptera.errors import HapteraError
from haptera.files.atomic import check_plain_file
from haptera.files.json import parse_json
from haptera.files.schema import check


def read_header(path: Path, key: str, what: str, writer: str) -> dict[str, Any]:
    """Return the object that a header has under a key.

    Args:
        path: of the file.
        key: in the header.
        what: such as `model`, for messages.
        writer: what writes such files.
    """
    check_plain_file(path)
    try:
        with safe_open(path, "np") as file:
            metadata = file.metadata() or {}
    except (OSError, ValueError, SafetensorError) as error:
        raise HapteraError(f"cannot read the {what} {path}: {error}") from error
    if key not in metadata:
        raise HapteraError(f"{path} is a safetensors file, and not one that {writer} wrote")
    where = f"the header of {path}"
    return check(parse_json(metadata[key], where), {}, where)
