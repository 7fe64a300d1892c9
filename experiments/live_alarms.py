"""Alarms with a promise: false alarms in streams without a shift, and how many images a shift takes to be noticed.

    python experiments/live_alarms.py [FOLDER]

Signals of CIFAR-10's test images are recorded once (`experiments/live_scores.py`, about three minutes); streams are
drawn from them with replacement, so that they are exchangeable with their reference of `REFERENCE` images exactly.
False alarms: `STREAMS` streams of 2,000 batches of 8 without a shift, `LONG` of them with batches of 64, the promise
being a chance of α over the whole life; and a promise by rate. Delays: after `BEFORE` images without a shift, every
corruption at every severity, `DRAWS` streams each, α = .05, until the first look at which the alarm is raised; beside
Kolmogorov and Smirnov's test of every signal and MMD of all signals on the last `WINDOW` images after each batch, with
the same promise: the t-th look gets α / (t (t + 1)), KS divided by the number of signals, MMD with its threshold from
a gamma distribution fitted to windows without a shift. A larger window of KS shows what it gains on small shifts.
Writes `live_alarms.md` into FOLDER, by default `docs/evidence/results`; about seven minutes on one core.
"""

import sys
import time
from pathlib import Path

import numpy as np
from scipy.spatial.distance import cdist
from scipy.stats import beta, gamma, kstwobign

from charts import RESULTS
from cifar_data import TEST
from haptera.live.alarms import Alarms
from haptera.live.profile import Profile
from haptera.statistics.sequential import ConformalMartingale
from live_scores import SEVERITIES, record

ALPHA, ALPHAS = 0.05, (0.01, 0.05, 0.1, 0.2)
STREAMS, LONG, BATCHES = 1000, 100, 2000
REFERENCE, BEFORE, AFTER, DRAWS = 2000, 3200, 3200, 11
WINDOW, WIDE, SIZES = 64, 512, (1, 8, 64)
HORIZON = 20_000
Scores = np.ndarray  # (images, signals)


def peaks(pool: Scores, streams: int, images: int, promise: str, random: np.random.Generator) -> np.ndarray:
    """Return the largest evidence of every stream and signal, `(streams, signals)`, at promise `life` or `rate`."""
    signals, found = pool.shape[1], []
    for start in range(0, streams, 50):
        rows = min(50, streams - start)
        reference = pool[random.integers(len(pool), size=(rows, REFERENCE))]
        flat = reference.transpose(0, 2, 1).reshape(rows * signals, REFERENCE)
        tests = ConformalMartingale(flat, promise=promise, seed=start)
        tables = tests.locate(np.tile(pool.T, (rows, 1))).reshape(rows, signals, len(pool))  # bin of every image
        highest = np.zeros(rows * signals)
        for _ in range(0, images, 64):
            drawn = random.integers(len(pool), size=(rows, 1, 64))
            bins = np.take_along_axis(tables, np.broadcast_to(drawn, (rows, signals, 64)), 2)
            highest = np.maximum(highest, tests.advance(bins.reshape(rows * signals, 64)))
        found.append(highest.reshape(rows, signals))
    return np.concatenate(found)


def false_alarms(pool: Scores, random: np.random.Generator) -> list[str]:
    """Return the table of false alarms, with what chance allows at most."""
    signals = pool.shape[1]
    lines = ["| promise | streams | batches | images | false alarms | share | 95 % interval |", "|---" * 7 + "|"]
    for streams, batch in ((STREAMS, 8), (LONG, 64)):
        highest = peaks(pool, streams, BATCHES * batch, "life", random)
        for alpha in ALPHAS:
            count = int((highest >= 2 * signals / alpha).any(1).sum())  # the first alarm gets half of α
            shape = f"{streams:,} | {BATCHES:,} of {batch} | {BATCHES * batch:,}"
            share = f"{count} | {count / streams:.3f} | {interval(count, streams)}"
            lines.append(f"| at most {alpha:g} over the life | {shape} | {share} |")
    highest = peaks(pool, LONG, BATCHES * 8, "rate", random)
    count = int((highest >= 2 * signals * HORIZON).any(1).sum())
    most = BATCHES * 8 / (2 * HORIZON)
    lines.append(
        f"| one in {HORIZON:,} images (first alarm: at most {most:g}) | {LONG} | {BATCHES:,} of 8 | {BATCHES * 8:,} | "
        f"{count} | {count / LONG:.3f} | {interval(count, LONG)} |"
    )
    return lines


def interval(count: int, total: int) -> str:
    """Return Clopper and Pearson's interval of a share."""
    low = beta.ppf(0.025, count, total - count + 1) if count else 0.0
    return f"{low:.3f} to {beta.ppf(0.975, count + 1, total - count):.3f}"


class Ours:
    """The alarms' own tests after a stretch without a shift, for several streams side by side."""

    def __init__(self, pool: Scores, random: np.random.Generator) -> None:
        self.signals = pool.shape[1]
        reference = pool[random.integers(len(pool), size=(DRAWS, REFERENCE))].transpose(0, 2, 1)
        self.tests = ConformalMartingale(reference.reshape(DRAWS * self.signals, REFERENCE))
        self.tests.update(self._rows(pool[random.integers(len(pool), size=(DRAWS, BEFORE))]))
        self.state = self.tests.state()

    def delays(self, scores: Scores, drawn: np.ndarray) -> np.ndarray:
        """Return how many images each stream takes, `(streams,)`; infinite beyond `AFTER`."""
        self.tests.restore(self.state)
        found = np.full(DRAWS, np.inf)
        place = 0
        while place < AFTER and np.isinf(found).any():
            step = 1 if place < 128 else 8
            highest = self.tests.update(self._rows(scores[drawn[:, place : place + step]])).reshape(DRAWS, -1)
            place += step
            found[np.isinf(found) & (highest >= 2 * self.signals / ALPHA).any(1)] = place
        return found

    def _rows(self, values: np.ndarray) -> np.ndarray:
        return values.transpose(0, 2, 1).reshape(DRAWS * self.signals, -1)


class KolmogorovSmirnov:
    """Tests of every signal on the last images, against a reference."""

    def __init__(self, pool: Scores, window: int, random: np.random.Generator) -> None:
        self.reference = np.sort(pool[random.integers(len(pool), size=REFERENCE)], axis=0)
        self.window, self.signals = window, pool.shape[1]
        self.before = self.ranks(pool[random.integers(len(pool), size=(DRAWS, window))])

    def ranks(self, scores: np.ndarray) -> np.ndarray:
        """Return the share of the reference below each score."""
        parts = [np.searchsorted(own, scores[..., k]) for k, own in enumerate(self.reference.T)]
        return np.stack(parts, -1) / REFERENCE

    def begin(self, scores: Scores) -> None:
        """Take the scores of a shift."""
        self.after = self.ranks(scores)

    def exceeds(self, drawn: np.ndarray, level: float) -> np.ndarray:
        """Say of each stream whether a test of its last images is significant; `drawn` came since the change."""
        recent = np.concatenate([self.before, self.after[drawn]], 1)[:, -self.window :]
        ordered, steps = np.sort(recent, 1), np.arange(self.window + 1)[:, None] / self.window
        distance = np.maximum((steps[1:] - ordered).max(1), (ordered - steps[:-1]).max(1))
        scale = np.sqrt(self.window * REFERENCE / (self.window + REFERENCE))
        return (distance * scale >= kstwobign.isf(level / self.signals)).any(1)


class MaximumMeanDiscrepancy:
    """MMD of all signals on the last images, against a reference; the kernel is as wide as the median distance."""

    def __init__(self, pool: Scores, random: np.random.Generator) -> None:
        self.centre, self.spread = pool.mean(0), pool.std(0)
        self.reference = self._scaled(pool[random.integers(len(pool), size=500)])
        squares = cdist(self.reference, self.reference, "sqeuclidean")
        self.width = float(np.median(squares[squares > 0]))
        self.within = float(np.exp(-squares / self.width).mean())
        self.clean = self._scaled(pool[random.integers(len(pool), size=400)])
        self.before = random.integers(len(self.clean), size=(DRAWS, WINDOW))
        self.begin(pool[:1])
        null = self._values(random.integers(len(self.clean), size=(2000, WINDOW)))
        self.shape, self.scale = null.mean() ** 2 / null.var(), null.var() / null.mean()

    def begin(self, scores: Scores) -> None:
        """Take the scores of a shift, after those of clean images."""
        both = np.concatenate([self.clean, self._scaled(scores)])
        self.kernel = np.exp(-cdist(both, both, "sqeuclidean") / self.width)
        self.cross = np.exp(-cdist(both, self.reference, "sqeuclidean") / self.width).mean(1)

    def exceeds(self, drawn: np.ndarray, level: float) -> np.ndarray:
        """Say of each stream whether its last images are too far from the reference."""
        recent = np.concatenate([self.before, drawn + len(self.clean)], 1)[:, -WINDOW:]
        return self._values(recent) >= gamma.isf(level, self.shape, scale=self.scale)

    def _values(self, rows: np.ndarray) -> np.ndarray:
        own = np.array([self.kernel[np.ix_(row, row)].mean() for row in rows])
        return own + self.within - 2 * self.cross[rows].mean(1)

    def _scaled(self, scores: Scores) -> np.ndarray:
        return (scores - self.centre) / self.spread


def delays_of(
    test: KolmogorovSmirnov | MaximumMeanDiscrepancy, scores: Scores, drawn: np.ndarray, batch: int
) -> np.ndarray:
    """Return how many images each stream takes until a look, one after each batch, is significant."""
    test.begin(scores)
    found, look = np.full(DRAWS, np.inf), BEFORE // batch
    for place in range(batch, AFTER + 1, batch):
        look += 1
        if batch < 8 and place > 256 and place % 8:
            continue  # a look at every eighth image, which still pays for all of them
        early = np.isinf(found) & test.exceeds(drawn[:, :place], ALPHA / (look * (look + 1)))
        found[early] = place
        if np.isfinite(found).all():
            break
    return found


def shown(delays: np.ndarray) -> str:
    """Return the median delay, or a dash where half of the streams have no alarm."""
    middle = float(np.sort(delays)[len(delays) // 2])
    return f"{middle:,.0f}" if np.isfinite(middle) else "–"


def run(folder: Path) -> None:
    """Write both tables."""
    began, scores = time.process_time(), record()
    pool, random = scores["clean"], np.random.default_rng(0)
    alarms = false_alarms(pool, random)
    print(f"false alarms after {time.process_time() - began:.0f} s", flush=True)
    ours = Ours(pool, random)
    others = {"KS": KolmogorovSmirnov(pool, WINDOW, random), f"KS {WIDE}": KolmogorovSmirnov(pool, WIDE, random)}
    others["MMD"] = MaximumMeanDiscrepancy(pool, random)
    names = ["alarms", *others]
    rows: dict[tuple[str, int], dict[tuple[int, str], np.ndarray]] = {}
    for shift in TEST:
        for severity in SEVERITIES:
            own = scores[f"{shift}-{severity}"]
            drawn = random.integers(len(own), size=(DRAWS, AFTER))
            images = ours.delays(own, drawn)
            cells = {(size, "alarms"): np.ceil(images / size) * size for size in SIZES}
            for name, test in others.items():
                cells |= {(size, name): delays_of(test, own, drawn, size) for size in SIZES}
            rows[shift, severity] = cells
        print(f"{shift} after {time.process_time() - began:.0f} s", flush=True)
    (folder / "live_alarms.md").write_text("\n".join([*text(alarms), *tables(rows, names), ""]), encoding="utf-8")


def text(alarms: list[str]) -> list[str]:
    """Return what stands above the table of delays."""
    return [
        "False alarms in streams without a shift, drawn from recorded signals of CIFAR-10's test images, with a "
        f"reference of {REFERENCE:,} images. A stream counts where any signal ever passes the threshold of the first "
        "alarm.",
        "",
        *alarms,
        "",
    ]


def tables(rows: dict[tuple[str, int], dict[tuple[int, str], np.ndarray]], names: list[str]) -> list[str]:
    """Return the delays of every cell, and their summary by severity."""
    columns = [(size, name) for size in SIZES for name in names]
    head = "| | " + " | ".join(f"{name}, {size}" for size, name in columns) + " |"
    rule = "|---" * (len(columns) + 1) + "|"
    lines = [
        f"Images from the change to the alarm, median of {DRAWS} streams after {BEFORE:,} images without a shift, with "
        f"a chance of {ALPHA:g} of any false alarm, ever; by batch size ({', '.join(map(str, SIZES))}). KS and MMD "
        f"look at the last {WINDOW} images, KS {WIDE} at the last {WIDE}. A dash: no alarm within {AFTER:,} images.",
        "",
        "Median over the 15 corruptions of each severity, and how many of them are found:",
        "",
        head,
        rule,
    ]
    for severity in SEVERITIES:
        cells = []
        for column in columns:
            values = np.array([np.sort(rows[shift, severity][column])[DRAWS // 2] for shift in TEST])
            cells.append(f"{shown(values)} ({np.isfinite(values).sum()})")
        lines.append(f"| severity {severity} | {' | '.join(cells)} |")
    lines += ["", "Every corruption and severity:", "", head, rule]
    for (shift, severity), cells in rows.items():
        lines.append(f"| {shift} {severity} | {' | '.join(shown(cells[column]) for column in columns)} |")
    return lines


def check_class(pool: Scores) -> None:
    """Make sure that the class that guards use does the same on one stream as the rows above."""
    random = np.random.default_rng(1)
    reference, stream = (pool[random.integers(len(pool), size=size)] for size in (REFERENCE, 640))
    names = [f"signal {k}" for k in range(pool.shape[1])]
    profile = Profile("", dict(zip(names, reference.T, strict=True)), np.zeros((REFERENCE, 2)))
    alarms, tests = Alarms(profile, signals=names, alpha=ALPHA), ConformalMartingale(reference.T)
    for step in range(10):
        own = stream[64 * step : 64 * step + 64].T
        alarms.update(dict(zip(names, own, strict=True)), step, 0.0)
        tests.update(own)
    assert np.allclose(list(alarms.evidence.values()), tests.evidence())
    assert alarms.threshold == 2 * pool.shape[1] / ALPHA


if __name__ == "__main__":
    check_class(record()["clean"])
    run(Path(sys.argv[1]) if len(sys.argv) > 1 else RESULTS)
