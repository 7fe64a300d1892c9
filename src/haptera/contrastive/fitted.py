"""What a fitted estimator knows about itself: encoders, histories, how good it is; how it trains, and is saved."""

from collections.abc import Callable, Sequence
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np
from sklearn.utils.validation import check_is_fitted

from haptera.checks import check_whole_number
from haptera.contrastive import plots
from haptera.contrastive.inputs import Inputs, is_several
from haptera.contrastive.loss import in_bits
from haptera.contrastive.model import NEGATIVES, Model
from haptera.contrastive.model_file import write_model
from haptera.contrastive.modes import Mode
from haptera.contrastive.training import Watch
from haptera.errors import HapteraError
from haptera.recordings.prepared import Preparation
from haptera.report.display import Display

if TYPE_CHECKING:
    from haptera.contrastive.estimator import ContrastiveEmbedding

Callback = Callable[[int, "ContrastiveEmbedding"], None]


class Fitted:
    """Attributes of an estimator that holds a `Model`; they are described where the estimator is."""

    model_: Model
    mode_: Mode
    _read: Callable[..., tuple[Inputs, Mode]]
    transform: Callable[..., Any]
    encoders_ = property(attrgetter("model_.encoders"))
    offset_ = property(attrgetter("model_.offset"))
    n_sessions_ = property(lambda self: len(self.model_.encoders))
    n_iter_ = property(lambda self: len(self.model_.history.loss))
    loss_history_ = property(lambda self: np.array(self.model_.history.loss))
    goodness_of_fit_history_ = property(lambda self: np.array(self.model_.history.goodness_of_fit))
    jacobian_history_ = property(lambda self: np.array(self.model_.history.jacobian))
    validation_history_ = property(lambda self: dict(self.model_.history.held_out))
    temperature_ = property(lambda self: self.model_.losses[0].temperature)

    @property
    def temperature_history_(self) -> np.ndarray:
        """Return the temperature after each step; where it is not learnt it is the same in all."""
        return np.array(self.model_.history.temperature or [self.temperature_] * self.n_iter_)

    def goodness_of_fit(
        self,
        X: Any,
        *y: Any,
        session_id: int | None = None,
        trials: Any = None,
        paired: Any = None,
        negatives: int = NEGATIVES,
        unit: str = "nats",
    ) -> float:
        """How much more the embedding knows of pairs in this data than a constant one would.

        Args:
            X: as in `fit`.
            *y: as in `fit`.
            session_id: which session it is, if there are several and `X` is one.
            trials: as in `fit`.
            paired: as in `fit`.
            negatives: by which it is measured; compare at equal numbers.
            unit: `nats`, 0 for a constant embedding and lower is better, or `bits`, with the sign turned.
        """
        check_is_fitted(self, "model_")
        if unit not in ("nats", "bits"):
            raise HapteraError(f"unit is {unit!r}; 'nats' or 'bits' was expected")
        inputs, mode = self._read(X, y, trials, paired)
        sessions = None if is_several(X) else [self.model_.session(session_id)]
        nats = self.model_.goodness_of_fit(inputs, mode, negatives, sessions)
        return in_bits(nats) if unit == "bits" else nats

    def score(self, X: Any, *y: Any, **options: Any) -> float:
        """The goodness of fit in bits, more is better, as `GridSearchCV` wants it."""
        if "y" in options:  # as scikit-learn may call it
            y = (options.pop("y"),)
        return self.goodness_of_fit(X, *y, unit="bits", **options)

    def save(self, path: str | Path, sessions: Sequence[Preparation] = ()) -> None:
        """Write weights and settings into one safetensors file, and how signals were prepared if that is given."""
        check_is_fitted(self, "model_")
        write_model(self.model_, self.mode_, Path(path), sessions)

    def _train(
        self, model: Model, inputs: Inputs, mode: Mode, steps: int, callback: Callback | None, every: int
    ) -> Self:
        """Train, and take the model: at the first callback, at the end, or where an interrupt ends it."""

        def take(step: int) -> None:
            self.model_, self.mode_ = model, mode
            if callback is not None and step:
                callback(step, cast("ContrastiveEmbedding", self))

        check_whole_number("callback_frequency", every)
        try:
            model.train(inputs, mode, steps, None if callback is None else Watch(take, every))
        except KeyboardInterrupt:
            take(0)
            raise
        take(0)
        return self

    def plot(
        self, X: Any, label: Any = None, *, session_id: int | None = None, trials: Any = None, **options: Any
    ) -> Display:
        """Draw the embedding of a signal, or of a list of all sessions; `options` are those of `plot_embedding`.

        An estimator with a `period` of 2π or 360 takes a label for an angle.
        """
        points = self.transform(X, session_id, trials=trials)
        return plots.plot_embedding(points, label, **plots.own_kind(cast("ContrastiveEmbedding", self), options))

    plot_loss = plots.plot_loss
    plot_temperature = plots.plot_temperature
    plot_overview = plots.plot_overview
