"""Flags of the command line, as a study file would say them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from haptera import catalog
from haptera.errors import HapteraError
from haptera.files.toml import parse_value


@dataclass(frozen=True)
class Spec:
    """`name:key=value,key=value`, as flags give it."""

    name: str
    arguments: Mapping[str, Any]

    @classmethod
    def parse(cls, text: str, words: Mapping[str, str] | None = None) -> "Spec":
        """Read a flag; the name itself may hold colons (`net.py:build`).

        Args:
            text: the flag.
            words: name -> the key whose value may come first, without the key.

        >>> Spec.parse("batchnorm:prior=8,frozen=true")
        Spec(name='batchnorm', arguments={'prior': 8, 'frozen': True})
        >>> Spec.parse("net.py:build").name
        'net.py:build'
        >>> Spec.parse("ccc:easy,speed=2000", {"ccc": "difficulty"})
        Spec(name='ccc', arguments={'difficulty': 'easy', 'speed': 2000})
        >>> Spec.parse("correlated:by=contrast:5").arguments
        {'by': 'contrast:5'}
        """
        head, equals, tail = text.partition("=")  # colons after it belong to a value
        name, _, first = head.rpartition(":")
        rest = first + equals + tail
        key = (words or {}).get(name, "")
        if "=" not in rest and not key:
            return cls(text, {})
        arguments: dict[str, Any] = {}
        for item in rest.split(","):
            own, given, value = item.partition("=")
            if given:
                key = own.strip()
                if key in arguments:
                    raise HapteraError(f"{text!r} gives {key!r} twice")
                arguments[key] = _value(value)
            elif not key:
                raise HapteraError(f"{text!r} says {item!r}; key=value was expected")
            elif key not in arguments:  # the word that needs no key
                arguments[key] = _value(item)
            else:  # "severities=1,3,5": a list goes on until the next key
                before = arguments[key] if isinstance(arguments[key], list) else [arguments[key]]
                arguments[key] = [*before, _value(item)]
        return cls(name, arguments)


def _value(text: str) -> Any:
    return parse_value(text.strip())


def from_flags(
    models: Sequence[str],
    weights: Sequence[Path] = (),
    streams: Sequence[str] = (),
    adapters: Sequence[str] = (),
    base: Path = Path(),
) -> dict[str, Any]:
    """Flags as the study file would say them; their paths are relative to `base`."""
    if weights and len(weights) != len(models):
        raise HapteraError(
            f"--weights is given {len(weights)} times for {len(models)} models; give one for each, in order"
        )
    content: dict[str, Any] = {"models": [], "streams": [], "adapters": []}
    for place, text in enumerate(models):
        spec = Spec.parse(text)
        model = {"build": located(spec.name, base), "arguments": dict(spec.arguments)}
        content["models"].append(model | ({"weights": str(base / weights[place])} if weights else {}))
    for kind, texts in (("streams", streams), ("adapters", adapters)):
        words = {name: entry.word for name, entry in catalog.entries(kind).items() if entry.word}
        specs = [Spec.parse(text, words) for text in texts]
        content[kind] = [{"use": located(spec.name, base), **spec.arguments} for spec in specs]
    return {key: value for key, value in content.items() if value}


def data_from_flags(
    path: str | None,
    size: int | None = None,
    channels: int | None = None,
    mapping: Path | None = None,
    restrict: bool = False,
    base: Path = Path(),
) -> dict[str, Any]:
    """The data as the study file would say it, empty where no flag does; paths are relative to `base`."""
    source: dict[str, Any] = {"path": path, "size": size, "channels": channels, "mapping": mapping}
    source |= {"path": str(base / path)} if path and path != "digits" else {}
    source |= {"mapping": str(base / mapping)} if mapping else {}
    source = {key: value for key, value in source.items() if value is not None}
    return source | ({"restrict": True} if restrict else {})


def located(name: str, folder: Path) -> str:
    """`file.py:object` relative to the study file; any other name as it is."""
    place, _, attribute = name.rpartition(":")
    return f"{folder / place}:{attribute}" if place.endswith(".py") else name
