"""ContrastiveEmbedding: consistent embeddings of recordings, as a scikit-learn estimator.

Source: thesis, chapter 7, its methods and Suppl. note 1. Names are those that users of the published estimator know.
Different from it: `random_state` makes a fit repeatable; `partial_fit` learns from the data that it is given; labels
of every type count; `hybrid` says which dimensions; several sessions work in every mode; a setting or label that would
be ignored is an error.
The method is patented (US 12,499,131 B2): check before commercial use.
Cost: `max_iterations` steps of `batch_size` pairs; see `signals` and `neighbours` for what a step does.
"""

from collections.abc import Callable, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted
from torch import nn

from haptera.contrastive.fitted import Callback, Fitted
from haptera.contrastive.inputs import Inputs, is_several, read_signals
from haptera.contrastive.loss import Similarity
from haptera.contrastive.model import Model
from haptera.contrastive.model_file import read_model
from haptera.contrastive.modes import Mode
from haptera.errors import HapteraError


class ContrastiveEmbedding(Fitted, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Embed a recording such that samples alike in time or behaviour lie close together.

    `fit(X)` goes by time, `fit(X, label)` by a continuous (float) or discrete (any other type) label, `fit(X, a, b)` by
    several, and `fit([X1, X2], [a1, a2])` by several sessions, each with an encoder of its own.

    Args:
        model_architecture: a name of `haptera.contrastive.architectures`, which ends in `-unified` if sessions share
            one network; a module with an `offset`; or a function of (channels, hidden units, dimensions).
        output_dimension: of the embedding.
        num_hidden_units: of the encoder.
        conditional: None chooses by the labels: `time`, `time_delta` (continuous, by differences that occur), `delta`
            (continuous, Gaussian) or `discrete`.
        time_offsets: samples between the two of a pair in time, or by which differences are taken; one or several.
        delta: standard deviation of the label in a pair, for `delta`.
        period: after how much the continuous label repeats, 2π for an angle; a list, with None where a column does not.
        prior: of discrete labels, `empirical` or `uniform`.
        differences_per_label: with both kinds of labels, take differences within the class of the reference.
        hybrid: also go by time: True for both on all dimensions, a number or list of dimensions for behaviour with time
            on all, `{"behaviour": ..., "time": ...}`, or parts, `{"0": ..., "1": ..., "time": ...}` (8.3).
        distance: `cosine`, `euclidean`, `dot`, `learnable`, or a `Similarity` of `haptera.contrastive.loss`;
            architectures with `-mse` take any but the first.
        temperature: by which similarities are divided.
        temperature_mode: `constant`, or `auto` to learn it.
        min_temperature: the least that `auto` may reach.
        positive_in_denominator: the form of the loss that cannot run away.
        jacobian_weight: λ of the term that keeps the encoder's Jacobian small, which attribution maps need (8.3); 0 is
            none. It means the same at every temperature.
        jacobian_ramp: steps without that term, and steps over which it rises; None is an eighth of all steps each.
        jacobian_exact: the norm itself, with a backward pass for each dimension, instead of one random projection.
        separate_encoders: one encoder for references, another for positives and negatives.
        batch_size: references of each session in a step; None is all samples.
        learning_rate: of Adam.
        max_iterations: steps of `fit` and `partial_fit`.
        max_adapt_iterations: steps of `fit(..., adapt=True)`.
        validation_fraction: share of every session, at its end, that is held out to watch the fit.
        patience: looks at held-out samples, one every 50 steps, without improvement after which to stop and go back to
            the best; None goes on to the end.
        pad_before_transform: repeat the ends, so that the embedding is as long as the signal.
        random_state: makes a fit repeatable to the bit on one machine.
        device: `cuda_if_available`, `cpu`, `cuda`, ...
        verbose: show a bar in a terminal.

    Attributes:
        model_: encoders, losses and what happened while they learnt.
        mode_: how pairs were drawn.
        encoders_: one for each of `n_sessions_` sessions; `offset_` is their window.
        n_iter_: steps done.
        loss_history_: the loss of each step.
        goodness_of_fit_history_: the same minus that of a constant embedding, in nats; lower is better.
        jacobian_history_: the mean squared norm of the Jacobian in each step that had the Jacobian term.
        validation_history_: step -> goodness of fit of held-out samples.
        temperature_: of the first loss, as it is now; `temperature_history_` after each step.

    >>> t = np.arange(300) / 20
    >>> X = np.stack([np.sin(t), np.cos(t), np.sin(2 * t)], 1)
    >>> model = ContrastiveEmbedding(output_dimension=3, max_iterations=20, batch_size=64, random_state=0)
    >>> model.fit(X, np.sin(t)).transform(X).shape
    (300, 3)
    """

    _n_features_out = property(attrgetter("output_dimension"))

    def __init__(
        self,
        model_architecture: str | nn.Module | Callable[[int, int, int], nn.Module] = "offset1-model",
        *,
        output_dimension: int = 8,
        num_hidden_units: int = 32,
        conditional: str | None = None,
        time_offsets: int | Sequence[int] = 1,
        delta: float | None = None,
        period: float | Sequence[float | None] | None = None,
        prior: str = "empirical",
        differences_per_label: bool = False,
        hybrid: bool | int | Sequence[int] | dict[str, Any] = False,
        distance: str | Similarity = "cosine",
        temperature: float = 1.0,
        temperature_mode: str = "constant",
        min_temperature: float | None = None,
        positive_in_denominator: bool = False,
        jacobian_weight: float = 0.0,
        jacobian_ramp: tuple[int, int] | None = None,
        jacobian_exact: bool = False,
        separate_encoders: bool = False,
        batch_size: int | None = 512,
        learning_rate: float = 3e-4,
        max_iterations: int = 10_000,
        max_adapt_iterations: int = 500,
        validation_fraction: float = 0.0,
        patience: int | None = None,
        pad_before_transform: bool = True,
        random_state: int | np.random.RandomState | None = None,
        device: str = "cuda_if_available",
        verbose: bool = False,
    ) -> None:
        self.model_architecture = model_architecture
        self.output_dimension = output_dimension
        self.num_hidden_units = num_hidden_units
        self.conditional = conditional
        self.time_offsets = time_offsets
        self.delta = delta
        self.period = period
        self.prior = prior
        self.differences_per_label = differences_per_label
        self.hybrid = hybrid
        self.distance = distance
        self.temperature = temperature
        self.temperature_mode = temperature_mode
        self.min_temperature = min_temperature
        self.positive_in_denominator = positive_in_denominator
        self.jacobian_weight = jacobian_weight
        self.jacobian_ramp = jacobian_ramp
        self.jacobian_exact = jacobian_exact
        self.separate_encoders = separate_encoders
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.max_iterations = max_iterations
        self.max_adapt_iterations = max_adapt_iterations
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.pad_before_transform = pad_before_transform
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    def fit(
        self,
        X: Any,
        *y: Any,
        adapt: bool | str = False,
        trials: Any = None,
        paired: Any = None,
        session_id: int | None = None,
        callback: Callback | None = None,
        callback_frequency: int = 100,
    ) -> Self:
        """Learn an embedding.

        An interrupt, or an error that `callback` raises, ends it and reaches the caller. The estimator is fitted then,
        as far as it came, and `partial_fit` goes on.

        Args:
            X: `(samples, channels)`, or a list of sessions.
            *y: labels, `(samples,)` or `(samples, columns)` each; of several sessions, a list of arrays each.
            adapt: keep what was learnt, and fit it to a new session, whatever its channels: True or `first` learns only
                the layers that read the channels, `all` everything from there on.
            trials: a number for each sample that changes where a trial begins. No window, no pair in time and no
                difference of labels goes across.
            paired: with `separate_encoders`, the signal of positives and negatives if it is not `X`; of `X`'s length.
            session_id: the encoder to begin from when adapting a model of several sessions.
            callback: is called as `callback(step, estimator)`, and may use the estimator as if it were fitted.
            callback_frequency: steps from one call to the next.
        """
        if adapt not in (False, True, "first", "all"):
            raise HapteraError(f"adapt is {adapt!r}; False, True, 'first' or 'all' was expected")
        if adapt:
            check_is_fitted(self, "model_")
        inputs, mode = self._read(X, y, trials, paired, reset=True)
        inputs.check_variety()
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        model = Model(self.get_params(deep=False), inputs.channels, inputs.paired_channels, seed)
        if adapt:
            start = self.model_.session(session_id)
            model.take_over(self.model_, start, inputs, mode, first_only=adapt != "all")
        steps = self.max_adapt_iterations if adapt else self.max_iterations
        return self._train(model, inputs, mode, steps, callback, callback_frequency)

    def partial_fit(
        self,
        X: Any,
        *y: Any,
        trials: Any = None,
        paired: Any = None,
        callback: Callback | None = None,
        callback_frequency: int = 100,
    ) -> Self:
        """Go on for `max_iterations` steps with this data alone, which may be new and needs the same channels.

        Weights, the optimiser's moments and the random numbers go on from where they were: a fit and a `partial_fit` of
        the same data are one fit of twice the steps. A model that was loaded begins with new moments. What was learnt
        from earlier data is not held on to. Arguments are those of `fit`.
        """
        if not hasattr(self, "model_"):
            more: dict[str, Any] = {"callback": callback, "callback_frequency": callback_frequency}
            return self.fit(X, *y, trials=trials, paired=paired, **more)
        inputs, mode = self._read(X, y, trials, paired)
        self.model_.check_channels(inputs)
        self.model_.settings = self.get_params(deep=False)
        return self._train(self.model_, inputs, mode, self.max_iterations, callback, callback_frequency)

    def transform(self, X: Any, session_id: int | None = None, *, trials: Any = None, side: str = "reference") -> Any:
        """The embedding `(samples, output_dimension)`; for a list of all sessions, a list.

        Args:
            X: a signal, or a list of all sessions.
            session_id: which session it is, if there are several.
            trials: as in `fit`; windows do not go across.
            side: with `separate_encoders`, `reference` or `paired`.
        """
        check_is_fitted(self, "model_")
        several, pad = is_several(X), self.pad_before_transform
        signals = read_signals(self, [X] if side == "paired" and not several else X)
        sessions = list(range(len(signals))) if several else [self.model_.session(session_id)]
        changes = trials if several and trials is not None else [trials] * len(signals)
        found = [self.model_.embed(*one, side=side, pad=pad) for one in zip(sessions, signals, changes, strict=True)]
        return found if several else found[0]

    def fit_transform(self, X: Any, *y: Any, **fit_params: Any) -> Any:
        """Fit, and embed the same data."""
        if "y" in fit_params:  # as scikit-learn may call it
            y = (fit_params.pop("y"),)
        return self.fit(X, *y, **fit_params).transform(X, trials=fit_params.get("trials"))

    @classmethod
    def load(cls, path: str | Path, **settings: Any) -> Self:
        """Read what `save` wrote.

        Args:
            path: the file.
            **settings: other values, such as `device`; an encoder or distance of your own must be given again.
        """
        model, mode = read_model(Path(path), settings)
        estimator = cls(**model.settings)
        estimator.model_, estimator.mode_, estimator.n_features_in_ = model, mode, model.channels[0]
        return estimator

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags

    def _read(self, X: Any, y: Sequence[Any], trials: Any, paired: Any, *, reset: bool = False) -> tuple[Inputs, Mode]:
        inputs = Inputs.read(self, X, y, trials, paired, reset=reset)
        return inputs, Mode.choose(inputs.context, self.get_params(deep=False))
