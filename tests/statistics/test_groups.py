"""Many groups at once have the intervals that each has by itself."""

import numpy as np
import pytest

from haptera.errors import HapteraError
from haptera.statistics.groups import means_of_groups
from haptera.statistics.intervals import mean_of_units


def test_every_group_has_the_interval_of_its_units():
    generator = np.random.default_rng(0)
    groups = np.repeat(np.arange(40) * 3, generator.integers(1, 6, 40))
    kinds = np.array(["plain", "log", "share"])
    scales = kinds[groups // 3 % 3]
    values = generator.beta(3, 3, len(groups))
    values[groups == 6] = 0.5  # all equal
    values[np.flatnonzero(groups == 9)[0]] = np.inf
    order = generator.permutation(len(groups))
    found = means_of_groups(values[order], groups[order], scales[order])
    for place, group in enumerate(np.unique(groups)):
        own = groups == group
        alone = mean_of_units(values[own], str(scales[own][0]))
        np.testing.assert_allclose((found.low[place], found.high[place]), alone.ends, rtol=1e-12)
        np.testing.assert_allclose(found.deviation[place], alone.deviation, rtol=1e-12, atol=1e-15)
        assert found.units[place] == alone.units


def test_values_outside_of_a_scale_are_refused():
    with pytest.raises(HapteraError, match="'share' takes values from 0 to 1"):
        means_of_groups(np.array([0.5, 1.5]), np.zeros(2, int), np.array(["share"] * 2))
