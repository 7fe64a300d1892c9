"""CEBRA: the estimator of the published package by its arguments and attributes; haptera's does the work.

Different from that package: see the table of `arguments`; silent channels are left out with a warning; `partial_fit`
learns from the data that it is given; a fit with `random_state` is repeatable; files are safetensors, and those of
that package are read without running their pickle.
"""

import logging
from collections.abc import Callable
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted
from torch import nn

from haptera.compat.cebra.arguments import ADAM, WIDE, Labels, recover, refuse, translate
from haptera.compat.cebra.fitted import Solver
from haptera.compat.cebra.saved import is_saved_by_cebra, read_saved
from haptera.contrastive.architectures import ARCHITECTURES
from haptera.contrastive.constants import constant_channels, name_channels
from haptera.contrastive.estimator import ContrastiveEmbedding
from haptera.contrastive.inputs import is_several
from haptera.contrastive.model_file import read_preparations
from haptera.errors import HapteraError
from haptera.models.source import choose_device
from haptera.recordings.prepared import Preparation

log = logging.getLogger("haptera")

Callback = Callable[[int, Solver], None]


class CEBRA(TransformerMixin, BaseEstimator):
    """The estimator of the package `cebra`, with its arguments; `arguments.ARGUMENTS` says what each becomes.

    Attributes:
        embedding_: haptera's estimator, which has all that was learnt.
        kept_channels_: for each session the channels that changed, which alone are used.
        num_sessions_: None for one session, as in that package.
        n_features_in_: channels; a list for several sessions.
        label_types_: type and shape of every label.

    >>> rng = np.random.default_rng(0)
    >>> neural, position = rng.normal(size=(200, 5)), np.sin(np.arange(200) / 9)
    >>> model = CEBRA(max_iterations=5, batch_size=32, output_dimension=3, random_state=0).fit(neural, position)
    >>> model.transform(neural).shape, len(model.state_dict_["loss"])
    ((200, 3), 5)
    """

    def __init__(
        self,
        model_architecture: str = "offset1-model",
        device: str = "cuda_if_available",
        criterion: str = "infonce",
        distance: str = "cosine",
        conditional: str | None = None,
        temperature: float = 1.0,
        temperature_mode: str = "constant",
        min_temperature: float | None = 0.1,
        time_offsets: int = 1,
        delta: float | None = None,
        max_iterations: int = 10_000,
        max_adapt_iterations: int = 500,
        batch_size: int | None = None,
        learning_rate: float = 3e-4,
        optimizer: str = "adam",
        output_dimension: int = 8,
        verbose: bool = False,
        num_hidden_units: int = 32,
        pad_before_transform: bool = True,
        hybrid: bool = False,
        optimizer_kwargs: Any = ADAM,
        masking_kwargs: Any = None,
        random_state: int | None = None,
    ) -> None:
        self.model_architecture = model_architecture
        self.device = device
        self.criterion = criterion
        self.distance = distance
        self.conditional = conditional
        self.temperature = temperature
        self.temperature_mode = temperature_mode
        self.min_temperature = min_temperature
        self.time_offsets = time_offsets
        self.delta = delta
        self.max_iterations = max_iterations
        self.max_adapt_iterations = max_adapt_iterations
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.optimizer = optimizer
        self.output_dimension = output_dimension
        self.verbose = verbose
        self.num_hidden_units = num_hidden_units
        self.pad_before_transform = pad_before_transform
        self.hybrid = hybrid
        self.optimizer_kwargs = optimizer_kwargs
        self.masking_kwargs = masking_kwargs
        self.random_state = random_state

    @classmethod
    def supported_model_architectures(cls, pattern: str = "*") -> list[str]:
        """Return the names of architectures that match a pattern."""
        return [name for name in (*WIDE, *ARCHITECTURES) if fnmatch(name, pattern)]

    def fit(
        self,
        X: Any,
        *y: Any,
        adapt: bool = False,
        callback: Callback | None = None,
        callback_frequency: int | None = None,
    ) -> Self:
        """Learn an embedding.

        Args:
            X: `(samples, channels)`, or a list of sessions.
            *y: labels, floating-point ones continuous, others discrete; of several sessions, a list of arrays each.
            adapt: keep what was learnt, and fit it to a new session.
            callback: called as `callback(steps, solver)`.
            callback_frequency: steps between two calls.
        """
        return self._learn(X, y, "adapt" if adapt else "fit", callback, callback_frequency)

    def partial_fit(
        self, X: Any, *y: Any, callback: Callback | None = None, callback_frequency: int | None = None
    ) -> Self:
        """Go on for `max_iterations` steps, with the data that is given."""
        return self._learn(X, y, "go on" if hasattr(self, "embedding_") else "fit", callback, callback_frequency)

    def transform(self, X: Any, batch_size: int | None = None, session_id: int | None = None) -> np.ndarray:
        """Return the embedding `(samples, output_dimension)`; `batch_size` changes nothing but memory there."""
        check_is_fitted(self, "embedding_")
        session = self.embedding_.model_.session(session_id)
        return self.embedding_.transform(self.channels(X, session), session_id)

    def fit_transform(self, X: Any, *y: Any, **options: Any) -> np.ndarray:
        """Fit, and embed the same data."""
        if "y" in options:  # as scikit-learn may call it
            y = (options.pop("y"),)
        return self.fit(X, *y, **options).transform(X)

    def channels(self, X: Any, session: int) -> np.ndarray:
        """Return the channels of a signal that the model uses."""
        signal, of = array(X), np.atleast_1d(self.n_features_in_)[session]
        if signal.ndim != 2 or signal.shape[1] != of:
            raise HapteraError(f"X has shape {signal.shape}; (samples, {of}) was expected, as in fit")
        return signal[:, self.kept_channels_[session]]

    def save(self, filename: str | Path, backend: str = "sklearn") -> None:
        """Write one safetensors file, which `load`, `ContrastiveEmbedding.load` and `haptera transform` read."""
        check_is_fitted(self, "embedding_")
        if backend != "sklearn":
            raise HapteraError(f"backend is {backend!r}; 'sklearn' was expected: whole objects are not pickled")
        sessions = [
            Preparation(f"session {number}", "signal", tuple(map(str, kept)), tuple(map(int, kept)), int(of))
            for number, (kept, of) in enumerate(
                zip(self.kept_channels_, np.atleast_1d(self.n_features_in_), strict=True)
            )
        ]
        self.embedding_.save(filename, sessions)

    @classmethod
    def load(
        cls, filename: str | Path, backend: str = "auto", weights_only: bool | None = None, **options: Any
    ) -> Self:
        """Read a model that `save` wrote, here or in the package `cebra`, without running a pickle."""
        if weights_only is False:
            raise HapteraError("weights_only is False; haptera never runs the pickle of a file, leave it out")
        if unknown := set(options) - {"map_location"}:
            raise HapteraError(f"load has no option {sorted(unknown)[0]!r}; map_location was expected")
        path = Path(filename)
        if is_saved_by_cebra(path):
            saved = read_saved(path)
            model = cls(**saved.params)
            return model._take(saved.embedding, [np.arange(count) for count in saved.channels], saved.channels)
        embedding = ContrastiveEmbedding.load(path)
        prepared = read_preparations(path)
        if any(one.smoothing or one.scaling is not None for one in prepared):
            raise HapteraError(f"{path} smooths or scales its signals; use `haptera transform`, which does that, too")
        model = cls(**recover(embedding.get_params(deep=False)))
        return model._take(embedding, [np.array(one.places) for one in prepared], [one.of for one in prepared])

    def to(self, device: str | torch.device) -> Self:
        """Move what was learnt to a device."""
        check_is_fitted(self, "embedding_")
        self.device = str(device)
        self.embedding_.set_params(device=self.device)
        self.embedding_.model_.settings["device"] = self.device
        self.embedding_.model_.modules.to(choose_device(self.device))
        return self

    @property
    def num_sessions_(self) -> int | None:
        """None for one session."""
        check_is_fitted(self, "embedding_")
        return None if self.embedding_.n_sessions_ == 1 else self.embedding_.n_sessions_

    @property
    def model_(self) -> nn.Module:
        """The encoder, or a list of them."""
        check_is_fitted(self, "embedding_")
        encoders = self.embedding_.encoders_
        return encoders[0] if len(encoders) == 1 else nn.ModuleList(encoders)

    @property
    def solver_(self) -> Solver:
        """What callbacks and notebooks ask for: the loss of every step, and the weights."""
        check_is_fitted(self, "embedding_")
        return Solver(self.embedding_, self.n_features_in_)

    num_sessions = property(lambda self: self.num_sessions_)
    n_features_ = property(lambda self: self.n_features_in_)
    state_dict_ = property(lambda self: self.solver_.state_dict())
    offset_ = property(lambda self: self.embedding_.offset_)
    device_ = property(lambda self: choose_device(self.device).type)

    def _learn(
        self, X: Any, y: tuple[Any, ...], how: str, callback: Callback | None, callback_frequency: int | None
    ) -> Self:
        if (callback is None) != (callback_frequency is None):
            raise HapteraError("callback and callback_frequency go together; one of them is missing")
        refuse(self.get_params(deep=False))
        several = is_several(X)
        signals = [array(one) for one in X] if several else [array(X)]
        labels = [label for label in y if label is not None]  # scikit-learn says y=None where there is none
        given = [[array(one) for one in label] if several else array(label) for label in labels]
        translation = translate(self.get_params(deep=False), kinds(given))
        for note in translation.notes:
            log.warning(note)
        new = how != "go on"
        kept = [_varying(signal, number) for number, signal in enumerate(signals)] if new else self.kept_channels_
        data = [signal[:, channels] for signal, channels in zip(signals, kept, strict=True)]
        embedding = ContrastiveEmbedding() if how == "fit" else self.embedding_
        embedding.set_params(**translation.settings)
        steps = self.max_adapt_iterations if how == "adapt" else self.max_iterations
        arguments = (data if several else data[0], *(given if translation.use_labels else []))
        for done, count in _pieces(steps, callback_frequency):
            embedding.set_params(max_iterations=count, max_adapt_iterations=count)
            if new and not done:
                embedding.fit(*arguments, adapt=how == "adapt")
                self._take(embedding, kept, [signal.shape[1] for signal in signals])
            else:
                embedding.partial_fit(*arguments)
            if callback is not None:
                callback(done + count, self.solver_)
        embedding.set_params(max_iterations=self.max_iterations, max_adapt_iterations=self.max_adapt_iterations)
        embedding.model_.settings = embedding.get_params(deep=False)
        self.label_types_ = [
            [(one.dtype, one.shape) for one in label] if isinstance(label, list) else (label.dtype, label.shape)
            for label in given
        ]
        return self

    def _take(self, embedding: ContrastiveEmbedding, kept: list[np.ndarray], channels: list[int]) -> Self:
        self.embedding_, self.kept_channels_ = embedding, kept
        self.n_features_in_ = channels if len(channels) > 1 else channels[0]
        return self


def array(values: Any) -> np.ndarray:
    """Return an array of whatever a script gives: arrays, lists, tensors."""
    made = values.detach().cpu().numpy() if isinstance(values, torch.Tensor) else np.asarray(values)
    return np.array(made.tolist()) if made.dtype == object else made  # numbers of a frame with text in other columns


def kinds(labels: list[Any]) -> Labels:
    """Return which kinds of labels there are, by their types."""
    floats = [np.asarray(label[0] if isinstance(label, list) else label).dtype.kind == "f" for label in labels]
    return Labels(any(floats), not all(floats))


def _varying(signal: np.ndarray, session: int) -> np.ndarray:
    """Return the channels that change; the rest is left out, with a warning."""
    if signal.ndim != 2 or not len(signal):
        raise HapteraError(f"X has shape {signal.shape}; (samples, channels), with some samples, was expected")
    silent, count = constant_channels(signal), signal.shape[1]
    if silent:
        named = name_channels(list(silent))
        log.warning("session %d: %d of %d channels never change, left out: %s", session, len(silent), count, named)
    return np.setdiff1d(np.arange(count), list(silent))


def _pieces(steps: int, every: int | None) -> list[tuple[int, int]]:
    """Return steps done and steps to do, from one callback to the next.

    >>> _pieces(10, 4)
    [(0, 4), (4, 4), (8, 2)]
    """
    starts = range(0, steps, every or max(steps, 1))
    return [(start, min(every or steps, steps - start)) for start in starts]
