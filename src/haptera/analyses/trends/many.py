"""Many test sets against one reference: a line each, who is robust on which, and which sets agree.

Source: Taori et al., "Measuring robustness to natural distribution shifts in image classification", 2020, whose testbed
is looked at like this. Each set is an analysis of trends of its own, with the same settings and reference. R² from
every set to every other is that of a line of the first set's kind, in accuracy. Two sets agree if the same models are
robust on both: the rank correlation of their effective robustness over the models that both have, with its interval
(`haptera.measures.corruptions`); those whose interval is above 0 agree, those below disagree.
Cost: that of the line and of the draws for each set; events and guarantees are left to the analysis of a pair.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from haptera.analyses.trends import findings as answers
from haptera.analyses.trends.analysis import Trends
from haptera.analyses.trends.page_many import sections
from haptera.analyses.trends.side import Side, join
from haptera.analysis import Analysis
from haptera.errors import HapteraError
from haptera.measures.corruptions import spearman_interval
from haptera.report.section import Finding, answer
from haptera.statistics.line import fit, r_squared
from haptera.words import shorten

FEWEST = 4
"""Models that two sets must have in common to be compared."""


@dataclass(frozen=True, eq=False)
class ManyTrends(Analysis):
    """Trends from one reference to many sets.

    Attributes:
        trends: name of a set -> its analysis.
    """

    kind: ClassVar[str] = "trends"
    definitions: ClassVar[Mapping[str, str]] = answers.DEFINITIONS
    sections = sections
    trends: Mapping[str, Trends]

    @classmethod
    def of(cls, reference: Side, shifted: Sequence[Side], **settings: Any) -> "ManyTrends":
        """Make an analysis for each set; `settings` are those of `Trends`."""
        names = [side.name for side in shifted]
        names = [side.source if names.count(name) > 1 else name for name, side in zip(names, shifted, strict=True)]
        if len(set(names)) < len(names):
            raise HapteraError(f"{shorten([name for name in names if names.count(name) > 1])} was given twice")
        joined = {name: join(reference, side) for name, side in zip(names, shifted, strict=True)}
        return cls({name: Trends(sides, **settings) for name, sides in joined.items()})

    @property
    def reference(self) -> str:
        """Return the name of the reference."""
        return next(iter(self.trends.values())).sides.reference.name

    @property
    def title(self) -> str:
        """Return the name of the reference and the number of sets."""
        return f"Trends: {self.reference} and {len(self.trends)} other sets"

    @property
    def settings(self) -> dict[str, Any]:
        """Return what was asked."""
        each = next(iter(self.trends.values())).settings
        return {**each, "shifted": [trend.settings["shifted"] for trend in self.trends.values()]}

    @cached_property
    def notes(self) -> list[str]:
        """What a reader must know about any of the sets, once each."""
        told = (note for trend in self.trends.values() for note in trend.notes)
        more = "events and guarantees are found for a pair of sets; give one set alone for them"
        return [*dict.fromkeys(told), more]

    @cached_property
    def models(self) -> list[str]:
        """Every model of any set."""
        return list(dict.fromkeys(name for trend in self.trends.values() for name in trend.models))

    @cached_property
    def verdicts(self) -> pd.DataFrame:
        """One row for each set: whether there is a line, its R² with the interval, and how far off models are."""
        rows = []
        for name, trend in self.trends.items():
            verdict = trend.verdict
            x, y = (float(side.mean()) for side in trend.accuracies)
            rows.append(
                {"set": name, "line": verdict.word, "fit": verdict.fit, "models": verdict.models, "r2": verdict.r2}
                | {"low": verdict.low, "high": verdict.high, "left_out": verdict.left_out, "without": verdict.without}
                | {"sampling": verdict.sampling, "slope": float(trend.lines[trend.line].line.slope), "lost": x - y}
            )
        return pd.DataFrame(rows)

    @cached_property
    def accuracies(self) -> pd.DataFrame:
        """`(models, sets)`, the reference first; NaN where a model was not measured."""
        columns: dict[str, pd.Series] = {}
        for name, trend in self.trends.items():
            for title, values in zip((self.reference, name), trend.accuracies, strict=True):
                own = pd.Series(values, index=list(trend.models))
                columns[title] = own.combine_first(columns[title]) if title in columns else own
        return pd.DataFrame(columns).reindex(self.models)

    @cached_property
    def robustness(self) -> pd.DataFrame:
        """Effective robustness in long form: `model`, `set`, `effective`, `effective_low`, `effective_high`."""
        parts = [
            trend.robustness[["model", "effective", "effective_low", "effective_high"]].assign(set=name)
            for name, trend in self.trends.items()
        ]
        return pd.concat(parts, ignore_index=True)

    @cached_property
    def r2(self) -> pd.DataFrame:
        """R² of the line from one set to another, in long form: `from`, `to`, `r2`, and `models` that both have."""
        first, rows = next(iter(self.trends.values())), []
        kind = first.line if first.line != "two_piece" else "linear"
        sizes = {self.reference: first.sides.reference.n} | {k: t.sides.shifted.n for k, t in self.trends.items()}
        for one in map(str, self.accuracies):
            for other in map(str, self.accuracies):
                both = self.accuracies[[one, other]].dropna() if one != other else pd.DataFrame()
                if len(both) < FEWEST or both[one].nunique() < 2:
                    continue
                n = [None if (size := sizes[each]) is None else int(size.min()) for each in (one, other)]
                try:
                    found = fit(both[one].to_numpy(), both[other].to_numpy(), kind, n=(n[0], n[1]))
                except HapteraError:  # accuracies of 0 or 1 and no n
                    continue
                value = r_squared(both[other].to_numpy(), found.residual)
                rows.append({"from": one, "to": other, "r2": value, "models": len(both)})
        return pd.DataFrame(rows, columns=["from", "to", "r2", "models"])

    @cached_property
    def agreement(self) -> pd.DataFrame:
        """One row for two sets: rank `correlation` of effective robustness, its interval, and whether they `agree`."""
        wide, rows = self.robustness.pivot(index="model", columns="set", values="effective"), []
        for one, other in combinations(self.trends, 2):
            both = wide[[one, other]].dropna()
            if len(both) < FEWEST:
                continue
            value = float(both[one].rank().corr(both[other].rank()))
            ends = spearman_interval(value, len(both)) if np.isfinite(value) else {}
            low, high = ends.get("low", np.nan), ends.get("high", np.nan)
            word = "agree" if low > 0 else "disagree" if high < 0 else "cannot say"
            row = {"one": one, "other": other, "models": len(both), "correlation": value, "low": low, "high": high}
            rows.append(row | {"agree": word})
        columns = ["one", "other", "models", "correlation", "low", "high", "agree"]
        return pd.DataFrame(rows, columns=columns).sort_values("correlation", ascending=False, ignore_index=True)

    def headline(self) -> str:
        """Return how many models and sets there are."""
        return f"{len(self.models):,} models, {len(self.trends)} sets against {self.reference}"

    def findings(self) -> list[Finding]:
        """Return the verdict of each set, who is robust on most of them, and which sets agree."""
        count = self.verdicts["line"].value_counts()
        words = ", ".join(f"{word} for {count[word]}" for word in ("yes", "no", "too few to say") if word in count)
        each = [f"{name}: {answers.describe_verdict(trend.verdict)}" for name, trend in self.trends.items()]
        numbers = {"sets": len(self.trends), "models": len(self.models), "verdicts": self.verdicts.to_dict("records")}
        numbers |= {"lines": {word: int(count[word]) for word in count.index}}
        wide = self.robustness.pivot(index="model", columns="set", values="effective")
        numbers |= {"r2_matrix": self.r2.to_dict("records"), "effective_robustness": wide.to_dict()}
        told = answer("line", "Is there a line?", words, *each, **numbers)
        told += self._say_robust(wide)
        if len(self.agreement):
            count = self.agreement["agree"].value_counts()
            text = ", ".join(f"{count.get(word, 0)} {word}" for word in ("agree", "disagree", "cannot say"))
            best, last = self.agreement.iloc[0], self.agreement.iloc[-1]
            pair = f"most {best['one']} and {best['other']} {best['correlation']:+.2f}"
            pair += f", least {last['one']} and {last['other']} {last['correlation']:+.2f}" * (len(self.agreement) > 1)
            text = f"of {len(self.agreement)} pairs of sets {text}; {pair} (rank correlation of effective robustness)"
            numbers = {"agreement": self.agreement.to_dict("records"), "pairs_of_sets": len(self.agreement)}
            told += answer("agree", "Which sets agree?", text, **numbers)
        return told

    def _say_robust(self, wide: pd.DataFrame) -> list[Finding]:
        rows = self.robustness
        above = rows[rows["effective_low"] > 0].groupby("model").size()
        below = rows[rows["effective_high"] < 0].groupby("model").size()
        mean = wide.mean(axis=1).sort_values(ascending=False)
        numbers = {"mean_effective_robustness": mean.to_dict(), "above": above.to_dict(), "below": below.to_dict()}
        text = ", ".join(
            f"{name} {mean[name]:+.3f} on average, above the line on {above.get(name, 0)} of {len(self.trends)} sets"
            for name in mean.index[:3]
        )
        last = mean.index[-1]
        low = f"lowest {last} {mean[last]:+.3f}, below the line on {below.get(last, 0)}"
        return answer("robust", "Who is off it?", text, low, **numbers)
