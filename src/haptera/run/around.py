"""What goes around any adapter, as settings of it by name: `tent:reset=1000` is `PeriodicReset(Tent, every=1000)`.

Several go around each other, the first of the list innermost. An adapter that has a setting of such a name itself, as
ROID has `ensemble`, keeps it for itself. `preset` stands for the settings that the table of presets has.
"""

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from math import inf
from typing import Any

from haptera.checks import check_number, check_whole_number
from haptera.errors import HapteraError, check_keys

PRESET = "preset"
AROUND_ADAPTERS = ("unmixing", "ensemble", "prior_correction", "asr", "reset", "cost", "epochs")
"""Settings of any adapter: give its BatchNorm layers several statistics, average its weights with the source's, correct
the class prior of its predictions, reset its last layers when predictions concentrate, reset it every so many steps,
let it miss the batches that come while a step takes so many intervals of the stream, learn offline for so many epochs
and then predict."""


def around(make: Callable[..., Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the settings that go around an adapter, in the order in which they do."""
    own = inspect.signature(make).parameters
    return {key: settings[key] for key in AROUND_ADAPTERS if key in settings and key not in own}


def check_around(make: Callable[..., Any], settings: Mapping[str, Any]) -> None:
    """Refuse values that what goes around an adapter does not take, and presets that it does not have."""
    if PRESET in settings:
        from haptera.adapters.presets import with_preset

        with_preset(make, str(settings[PRESET]))
    for key, value in around(make, settings).items():
        if key == "ensemble":
            check_number(key, value, least=0, most=1, what="a share")
        elif key == "asr":
            if value is not True:
                raise HapteraError(f"asr is {value!r}; true was expected, or to leave it out")
        elif key == "prior_correction":
            from haptera.adapters.prior_correction import SCALES

            check_keys(key, [str(value)], SCALES)
        elif key == "cost":
            check_number(key, value, above=0, below=inf, what="a number of intervals of the stream")
            if "epochs" in settings:
                raise HapteraError("an adapter has cost and epochs; one that learns offline does not miss batches")
        else:
            check_whole_number(key, value, 1)


def configured(make: Any, settings: Mapping[str, Any]) -> Any:
    """Return an adapter with its settings, and with what goes around it."""
    outer = around(make, settings)
    own = {key: value for key, value in settings.items() if key not in outer and key != PRESET}
    if PRESET in settings:
        from haptera.adapters.presets import with_preset

        make = with_preset(make, str(settings[PRESET]), **own)
    elif own:
        make = partial(make, **own)
    if not outer:
        return make
    from haptera.adapters import AdaptiveReset, Ensemble, Offline, PeriodicReset, PriorCorrection, TimeLimit, UnMixing

    makers: dict[str, Callable[..., Any]] = {
        "unmixing": UnMixing,
        "ensemble": Ensemble,
        "prior_correction": PriorCorrection,
        "asr": lambda method, _: AdaptiveReset(method),
        "reset": PeriodicReset,
        "cost": lambda method, cost: partial(TimeLimit, method=method, cost=cost),
        "epochs": lambda method, epochs: partial(Offline, method=method, epochs=epochs),
    }
    for key, value in outer.items():
        make = makers[key](make, value)
    return make
