"""Models of a repository for torch.hub: `FOLDER:ENTRY` on this machine, or `OWNER/NAME[:BRANCH]:ENTRY` of GitHub.

The repository's `hubconf.py` is code, and it is run.
"""

from pathlib import Path
from typing import Any

import torch

from haptera.errors import HapteraError, first_line
from haptera.models.classifier import Classifier
from haptera.modules import unwrap


def load(text: str, **settings: Any) -> Classifier:
    """Return a model of a repository for torch.hub.

    Args:
        text: repository and entry, with a colon between them.
        **settings: of the entry, such as `pretrained`.
    """
    repository, _, entry = text.rpartition(":")
    if not repository:
        raise HapteraError(f"model hub:{text}: hub:FOLDER:ENTRY or hub:OWNER/NAME:ENTRY was expected")
    folder = Path(repository).expanduser()
    local = folder.is_dir()
    if not local and repository.startswith((".", "/", "~")):
        raise HapteraError(f"model hub:{text}: there is no folder {folder}")
    if local and not (folder / "hubconf.py").is_file():
        raise HapteraError(f"model hub:{text}: there is no hubconf.py in {folder}")
    where: dict[str, Any] = {"source": "local"} if local else {"source": "github", "trust_repo": True}
    place = str(folder) if local else repository
    try:
        made = torch.hub.load(place, entry, verbose=False, **where, **settings)
    except Exception as error:
        raise HapteraError(f"model hub:{text}: torch.hub could not load it: {first_line(error)}") from error
    if not isinstance(made, torch.nn.Module):
        raise HapteraError(f"model hub:{text}: it gave a {type(made).__name__}, an nn.Module was expected")
    return Classifier(unwrap(made), getattr(made, "preprocessing", None))
