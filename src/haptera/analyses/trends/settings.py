"""Settings of an analysis of trends."""

from dataclasses import dataclass


@dataclass(frozen=True)
class TrendSettings:
    """Which line, which wedge, and how many draws.

    Attributes:
        fit: line to measure from: linear, probit, logit, two_piece, robust, robust_probit or best.
        switch: two pieces meet at the model of this rank; else at the best.
        joined: whether two pieces meet at all.
        wedge: δ1 δ2 ν1 ν2 to test; else the narrowest.
        share: of the events, for which a narrowest wedge is sought too.
        baseline: what relative robustness compares with; else the best other model.
        draws: of examples, and of models, for the intervals.
        seed: of the draws.
    """

    fit: str = "best"
    switch: int | None = None
    joined: bool = True
    wedge: tuple[float, float, float, float] | None = None
    share: float = 0.95
    baseline: str | None = None
    draws: int = 1000
    seed: int = 0
