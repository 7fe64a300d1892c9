"""Tuning: settings of an adapter, chosen on hold-out corruptions only.

Source: thesis chapters 2 (N on the hold-out corruptions), 3 (cross-validation on them, appendix B) and 4 (the reset
interval). Differs: the mean error decides, and not the mCE, which needs the errors of another network.
Cost: a cell for each setting, corruption, severity and seed, of which those that are finished are not run again.

    tuned = tune({"net": net}, data, Tent, Search({"lr": [1e-4, 1e-3, 1e-2]}), out="tuned")
    tuned.best, tuned.table, tuned.study_file
"""

from haptera.tune.choice import Choice
from haptera.tune.recipes import RECIPES
from haptera.tune.run import tune
from haptera.tune.search import Range, Search

__all__ = ["RECIPES", "Choice", "Range", "Search", "tune"]
