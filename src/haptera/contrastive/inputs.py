"""What `fit` is given, checked: settings, sessions of signals, labels, trials, and the signals of the other side."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array, validate_data

from haptera.checks import check_number, check_whole_number
from haptera.contrastive.architectures import LONG, keeps_length
from haptera.contrastive.constants import name_channels
from haptera.contrastive.jacobian import JacobianTerm
from haptera.contrastive.modes import Context
from haptera.errors import HapteraError
from haptera.recordings.kinds import MANY
from haptera.recordings.preparation import varies

log = logging.getLogger("haptera")


@dataclass(frozen=True)
class Inputs:
    """Sessions, and what is known about them.

    Attributes:
        signals: `(samples, channels)` for each session.
        paired: signals of positives and negatives, if they are others.
        context: the labels, over all sessions.
        trials: for each session None or a number for each sample.
    """

    signals: list[np.ndarray]
    paired: list[np.ndarray] | None
    context: Context
    trials: list[np.ndarray | None]

    @classmethod
    def read(
        cls,
        estimator: BaseEstimator,
        X: Any,
        labels: Sequence[Any],
        trials: Any = None,
        paired: Any = None,
        *,
        reset: bool = False,
    ) -> "Inputs":
        """Check all that can be checked before the first step; `reset` learns the number of features from `X`."""
        settings = estimator.get_params(deep=False)
        if paired is not None and not settings["separate_encoders"]:
            raise HapteraError("paired was given; it is used with separate_encoders=True only")
        check_settings(settings)
        several = is_several(X)
        signals = read_signals(estimator, X, reset=reset)
        lengths = [len(signal) for signal in signals]
        other = None
        if paired is not None:
            other = [_check(one, "paired") for one in (paired if several else [paired])]
            if [len(one) for one in other] != lengths:
                raise HapteraError(f"paired has {[len(one) for one in other]} samples; {lengths} expected, as in X")
        context = Context.of([label for label in labels if label is not None], lengths, several)
        return cls(signals, other, context, _read_trials(trials, lengths, several))

    @property
    def lengths(self) -> list[int]:
        """Samples of each session."""
        return [len(signal) for signal in self.signals]

    @property
    def channels(self) -> list[int]:
        """Return the number of channels of each session."""
        return [signal.shape[1] for signal in self.signals]

    @property
    def paired_channels(self) -> list[int] | None:
        """Return the number of channels of the other side, if it has signals of its own."""
        return None if self.paired is None else [signal.shape[1] for signal in self.paired]

    def check_variety(self) -> None:
        """Refuse a signal that never changes; warn of channels that do not, and of more classes than a label has."""
        for signals, name in ((self.signals, "X"), (self.paired or [], "paired")):
            for session, signal in enumerate(signals):
                constant = np.flatnonzero(~varies(signal))
                where = f"{name}[{session}]" if len(signals) > 1 else name
                if len(constant) == signal.shape[1]:
                    raise HapteraError(f"{where} never changes, in none of its {len(constant)} columns")
                if len(constant):
                    which = f"{len(constant)} of {signal.shape[1]} channels"
                    log.warning("%s: %s never change and count for nothing: %s", where, which, name_channels(constant))
        if self.context.names is not None and (count := len(self.context.names)) > MANY:
            log.warning("labels make %s classes; a label that is a number must be given as float", f"{count:,}")


def is_several(X: Any) -> bool:
    """Say whether it is a list of sessions rather than one signal."""
    return isinstance(X, list | tuple) and len(X) > 0 and np.ndim(X[0]) == 2


def read_signals(estimator: BaseEstimator, X: Any, *, reset: bool = False) -> list[np.ndarray]:
    """Signals, with scikit-learn's checks; a memory map is read once, and stays one."""
    if is_several(X):
        signals = [_check(one, f"X[{session}]") for session, one in enumerate(X)]
        if reset:
            estimator.n_features_in_ = signals[0].shape[1]
        return signals
    if not reset and getattr(estimator, "n_sessions_", 1) > 1:  # each session has channels of its own
        return [_check(X, "X")]
    return [validate_data(estimator, X, reset=reset, dtype="numeric", ensure_min_samples=2 if reset else 1)]


def _check(X: Any, name: str) -> np.ndarray:
    try:
        return check_array(X, dtype="numeric", input_name=name)
    except ValueError as error:
        raise HapteraError(f"{name}: {error}") from error


def _read_trials(trials: Any, lengths: list[int], several: bool) -> list[np.ndarray | None]:
    if trials is None:
        return [None] * len(lengths)
    if several and (not isinstance(trials, list | tuple) or len(trials) != len(lengths)):
        raise HapteraError(f"trials is not a list of {len(lengths)} arrays, one for each session")
    found = [None if one is None else np.asarray(one) for one in (trials if several else [trials])]
    for session, (one, length) in enumerate(zip(found, lengths, strict=True)):
        if one is not None and one.shape != (length,):
            raise HapteraError(f"trials of session {session} have shape {one.shape}; ({length},) was expected")
    return found


def check_settings(settings: Mapping[str, Any]) -> None:
    """Refuse settings of an estimator that no other part checks."""
    for name in ("max_iterations", "max_adapt_iterations", "batch_size", "patience"):
        value = settings[name]
        if value is None and name in ("batch_size", "patience"):
            continue
        check_whole_number(name, int(value) if isinstance(value, np.integer) else value)
    ramp, name = settings["jacobian_ramp"], settings["model_architecture"]
    if ramp is not None and (np.ndim(ramp) != 1 or len(ramp) != 2):
        raise HapteraError(f"jacobian_ramp is {ramp!r}; (steps without, steps of the ramp) was expected")
    JacobianTerm.of(settings["jacobian_weight"], ramp, settings["jacobian_exact"], settings["max_iterations"])
    check_number("learning_rate", settings["learning_rate"], above=0)
    check_number("validation_fraction", settings["validation_fraction"], least=0, below=1, what="a share")
    if settings["patience"] is not None and not settings["validation_fraction"]:
        raise HapteraError(f"patience is {settings['patience']}, and nothing is held out; set validation_fraction")
    # An encoder whose outputs keep their length does not learn from angles, which forget it.
    if keeps_length(name) and settings["distance"] == "cosine":
        raise HapteraError(
            f"model_architecture is {name!r}, whose outputs are not of unit length, and distance is 'cosine'; "
            f"distance='euclidean' was expected, or {name.replace(LONG, '')!r}"
        )
