"""RecordingAnalysis: what every analysis of embeddings leaves in its folder and shows in a notebook.

One recording, an adapted one and several sessions differ in what they ask. They are alike in what they hold: for every
session the recording in its parts, and points for all of its samples by the first seed.
"""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from haptera.analyses.embedding.plan import Parts, Plan
from haptera.analysis import Analysis
from haptera.contrastive.plots import plot_embedding, temperature_chart
from haptera.errors import HapteraError, unknown
from haptera.files.atomic import whole
from haptera.recordings.label import Label
from haptera.report.display import Display
from haptera.report.figure import Figure


class RecordingAnalysis(Analysis):
    """An analysis with `plan`, `fits`, and `spaces`: the name of a session -> its parts and its points.

    Of a single recording the name is empty.
    """

    if TYPE_CHECKING:  # fields of a subclass that is frozen

        @property
        def plan(self) -> Plan: ...  # noqa: D102
        @property
        def fits(self) -> tuple[Any, ...]: ...  # noqa: D102

    @property
    def spaces(self) -> Mapping[str, tuple[Parts, np.ndarray]]:
        """Return the sessions as they were embedded by the first seed."""
        raise NotImplementedError

    def files(self) -> dict[str, Callable[[Path], None]]:
        """Return what writes the embedding with its labels, and the model of the first seed."""
        save = partial(self.fits[0].model.save, sessions=[parts.preparation for parts, _ in self.spaces.values()])
        return {"embedding.npz": self._write_arrays, "model.safetensors": save}

    def _write_arrays(self, path: Path) -> None:
        arrays: dict[str, np.ndarray] = {}
        for session, (parts, points) in self.spaces.items():
            recording = parts.whole
            own = {"embedding": points, "part": parts.names}
            own |= {f"label_{name}": recording.label(name).values for name in self.plan.labels}
            own |= {} if recording.times is None else {"times": recording.times}
            own |= {} if recording.trials is None else {"trials": recording.trials}
            arrays |= {f"{session}/{name}" if session else name: values for name, values in own.items()}
        with whole(path) as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]

    def plot(self, label: str | None = None, **options: Any) -> Display:
        """Draw the embedding, coloured by a label of the plan, the first by default.

        Args:
            label: its name.
            **options: of `haptera.contrastive.plots.plot_embedding`, such as `engine` and `dimensions`.
        """
        if label is not None and label not in self.plan.labels:
            raise unknown("label", label, self.plan.labels)
        name = label or next(iter(self.plan.labels), None)
        points = {session: points for session, (_, points) in self.spaces.items()}
        if name is None:
            return plot_embedding(points if len(points) > 1 else next(iter(points.values())), **options)
        every = [parts.whole.label(name) for parts, _ in self.spaces.values()]
        joined = Label(np.concatenate([one.values for one in every]), every[0].kind, every[0].classes)
        return plot_embedding(points, joined, **{"name": name} | options)

    def plot_loss(self, *, engine: str = "matplotlib", ax: Any = None) -> Display:
        """Draw the goodness of fit over training of every fit, true and shuffled."""
        return Display(self._charts("Fit")[:1], engine, ax)

    def plot_consistency(self, *, engine: str = "matplotlib", ax: Any = None) -> Display:
        """Draw how well one run, or one session, is an affine map of another."""
        charts = self._charts("Consistency")
        if not charts:
            raise HapteraError("there is nothing to compare: consistency needs two seeds, or sessions with a label")
        return Display(charts[:1], engine, ax)

    def plot_temperature(self, *, engine: str = "matplotlib", ax: Any = None) -> Display:
        """Draw the temperature after every step of every seed."""
        return Display([temperature_chart({f"seed {fit.seed}": fit.model for fit in self.fits})], engine, ax)

    def plot_overview(self, label: str | None = None, *, engine: str = "matplotlib", **options: Any) -> Display:
        """Draw the embedding, the goodness of fit over training, and consistency where it is known."""
        cloud = self.plot(label, engine=engine, **options).charts
        return Display([*cloud, *self._charts("Fit")[:1], *self._charts("Consistency")[:1]], engine)

    def _charts(self, title: str) -> list[Figure]:
        """Return the figures of a section of the page."""
        known = (section for section in self.sections() if section is not None and section.title == title)
        return [figure for section in known for figure in section.figures]
