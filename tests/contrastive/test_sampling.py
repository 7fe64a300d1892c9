"""Samplers against the distributions they promise, by slow enumeration and chi-square tests on large draws."""

import numpy as np
import pytest
from scipy.stats import chisquare, norm

from haptera.contrastive.modes import Context, Mode
from haptera.contrastive.neighbours import LabelSpace, Nearest
from haptera.contrastive.sampling import (
    ContinuousSampler,
    DiscreteSampler,
    Gaussian,
    Marginal,
    TimeDelta,
    TimeSampler,
)
from haptera.contrastive.signals import Timeline
from haptera.errors import HapteraError
from haptera.recordings.windows import Offset

ONE = Offset(0, 1)
DRAWS = 40_000


def random(seed=0):
    return np.random.default_rng(seed)


def fits(found, expected):
    """Whether counts fit probabilities; entries of probability 0 must not occur."""
    expected = np.asarray(expected, float)
    counts = np.bincount(found, minlength=len(expected))
    assert not counts[expected == 0].any()
    some = expected > 0
    return chisquare(counts[some], expected[some] / expected.sum() * len(found)).pvalue > 1e-3


def test_references_and_negatives_are_uniform_over_samples_with_a_whole_window():
    timeline = Timeline([30], Offset(5, 5))
    pairs = TimeSampler(timeline, [2]).draw(DRAWS, random())
    negatives = np.zeros(30)
    negatives[5:26] = 1
    references = np.zeros(30)
    references[5:24] = 1
    assert fits(pairs.negative[0], negatives)
    assert fits(pairs.reference[0], references)
    assert (pairs.positive - pairs.reference == 2).all()


def test_several_time_offsets_are_equally_likely():
    pairs = TimeSampler(Timeline([100], ONE), [1, 5, 9]).draw(DRAWS, random())
    expected = np.zeros(10)
    expected[[1, 5, 9]] = 1
    assert fits((pairs.positive - pairs.reference)[0], expected)


def test_no_pair_in_time_and_no_window_goes_across_a_trial():
    trials = np.repeat([3, 1, 2, 1], [20, 8, 15, 12])
    timeline = Timeline([55], Offset(2, 3), [trials])
    pairs = TimeSampler(timeline, [1, 4]).draw(5000, random())
    run = np.repeat([0, 1, 2, 3], [20, 8, 15, 12])
    for places in (pairs.reference, pairs.positive, pairs.negative):
        for before, after in ((-2, 0), (0, 2)):
            assert (run[places + before] == run[places + after]).all()
    assert (run[pairs.reference] == run[pairs.positive]).all()
    assert set(run[pairs.negative[0]]) == {0, 1, 2, 3}


def test_trials_shorter_than_the_window_are_left_out_and_counted():
    timeline = Timeline([30], Offset(5, 5), [np.repeat([0, 1, 2], [12, 3, 15])])
    assert timeline.left_out == 1
    assert timeline.valid[0].all().tolist() == [5, 6, 7, *range(20, 26)]
    with pytest.raises(HapteraError, match="9 samples; a window needs 10"):
        Timeline([9], Offset(5, 5))


@pytest.mark.parametrize("prior", ["empirical", "uniform"])
@pytest.mark.parametrize("dtype", [np.int64, np.int8, np.uint8, "negative", "text", bool])
def test_discrete_sampling_of_any_type_with_rare_classes(prior, dtype):
    counts = [70, 29, 1] if dtype is not bool else [70, 30]  # the last class has one sample; 7 is missing between
    labels = np.repeat([0, 3, 9][: len(counts)], counts)
    labels = labels - 5 if dtype == "negative" else labels.astype(str if dtype == "text" else dtype)
    labels = random(1).permutation(labels)
    context = Context.of([labels], [100], False)
    mode = Mode.choose(context, SETTINGS | {"prior": prior})
    assert mode.conditional == "discrete"
    pairs = mode.samplers(context, Timeline([100], ONE))[0].draw(DRAWS, random())
    code = np.unique(labels, return_inverse=True)[1]
    shares = counts if prior == "empirical" else [1] * len(counts)
    assert fits(code[pairs.reference[0]], shares)
    assert fits(code[pairs.negative[0]], shares)
    assert (code[pairs.reference] == code[pairs.positive]).all()
    members = np.flatnonzero(code == 1)
    drawn = pairs.positive[0][code[pairs.reference[0]] == 1]
    assert fits(np.searchsorted(members, drawn), np.ones(len(members)))


SETTINGS = {
    "conditional": None,
    "hybrid": False,
    "time_offsets": 1,
    "delta": None,
    "period": None,
    "prior": "empirical",
    "differences_per_label": False,
}


def slow_positives(labels, space, differences, classes=None, reference=None):
    """Probability of every sample to be the positive of one reference, by enumeration."""
    probability = np.zeros(len(labels))
    points = space.points(labels)
    for difference in differences:
        query = space.points(labels[reference : reference + 1] + difference)
        distances = ((points - query) ** 2).sum(1)
        if classes is not None:
            distances[classes != classes[reference]] = np.inf
        nearest = np.isclose(distances, distances.min(), rtol=0, atol=1e-12)
        probability[nearest] += 1 / nearest.sum()
    return probability


@pytest.mark.parametrize("period", [None, 6.0])
@pytest.mark.parametrize("with_classes", [False, True])
def test_time_delta_draws_the_sample_nearest_to_a_difference_that_occurs(period, with_classes):
    generator = random(3)
    labels = generator.uniform(0, 6, (25, 1))[generator.integers(0, 25, 40)]  # some are equal
    classes = generator.integers(0, 3, 40) if with_classes else None
    space, timeline = LabelSpace(1, period), Timeline([40], ONE)
    marginal = Marginal(timeline, classes)
    pairs = ContinuousSampler(marginal, labels, space, TimeDelta(timeline, labels, space, [1, 3])).draw(
        DRAWS * 4, random()
    )
    differences = [labels[t + step] - labels[t] for step in (1, 3) for t in range(40 - step)]
    for reference in (0, 17, 39):
        drawn = pairs.positive[0][pairs.reference[0] == reference]
        assert fits(drawn, slow_positives(labels, space, differences, classes, reference))


def test_differences_per_label_begin_in_the_class_of_the_reference():
    classes = np.tile(np.repeat([0, 1], 10), 5)
    labels = np.where(classes == 0, 1.0, -1.0).cumsum()[:, None] * 10  # up by 10 in class 0, down in class 1
    timeline, space = Timeline([100], ONE), LabelSpace(1)
    change = TimeDelta(timeline, labels, space, [1], classes)
    references = np.array([np.flatnonzero(classes == k)[3] for k in (0, 1)]).repeat(2000)
    drawn = change.draw(references, random())[:, 0]
    after = labels[1:, 0] - labels[:-1, 0]
    for code in (0, 1):
        options = after[classes[:-1] == code]
        up = drawn[classes[references] == code] > 0
        assert fits(up.astype(int), [(options < 0).mean(), (options > 0).mean()])


def test_delta_is_a_gaussian_around_the_label_on_the_circle_too():
    labels = np.arange(36.0)[:, None] * 10
    space = LabelSpace(1, period=360.0)
    sampler = ContinuousSampler(Marginal(Timeline([36], ONE)), labels, space, Gaussian(1, 15.0))
    pairs = sampler.draw(DRAWS, random())
    steps = (pairs.positive - pairs.reference + 18) % 36 - 18
    expected = np.diff(norm.cdf((np.arange(-18, 19) - 0.5) * 10, scale=15))
    some = expected > 1e-3
    counts = np.bincount((steps + 18).ravel(), minlength=36)
    assert chisquare(counts[some], expected[some] / expected[some].sum() * counts[some].sum()).pvalue > 1e-3


def test_sessions_weigh_equally_and_positives_come_from_all_of_them():
    lengths = [30, 300, 90]
    generator = random(2)
    labels = np.concatenate([generator.uniform(0, 1, length) for length in lengths])[:, None]
    timeline, space = Timeline(lengths, ONE), LabelSpace(1)
    sampler = ContinuousSampler(Marginal(timeline), labels, space, Gaussian(1, 0.05))
    pairs = sampler.draw(10_000, random())
    assert pairs.reference.shape == (1, 30_000)
    sessions = [timeline.session_of(places[0]) for places in (pairs.reference, pairs.positive, pairs.negative)]
    for session in sessions:
        assert fits(session, [1, 1, 1])
    joint = sessions[0] * 3 + sessions[1]
    assert fits(joint, np.ones(9))
    assert np.abs(labels[pairs.reference] - labels[pairs.positive]).max() < 0.3


def test_a_class_that_a_session_lacks_is_looked_for_in_the_others():
    classes = np.concatenate([np.repeat([0, 1], 20), np.repeat([1, 2], 30)])
    timeline = Timeline([40, 60], ONE)
    pairs = DiscreteSampler(Marginal(timeline, classes)).draw(20_000, random())
    assert (classes[pairs.reference] == classes[pairs.positive]).all()
    shared = classes[pairs.reference[0]] == 1
    assert fits(timeline.session_of(pairs.positive[0][shared]), [1, 1])


def test_time_pairs_of_several_sessions_have_negatives_of_their_own_session():
    timeline = Timeline([50, 200], ONE)
    pairs = TimeSampler(timeline, [3]).draw(1000, random())
    for session in (0, 1):
        for places in (pairs.reference, pairs.positive, pairs.negative):
            assert (timeline.session_of(places[session]) == session).all()


def test_full_batch_is_every_sample_once():
    timeline = Timeline([25], Offset(2, 3))
    valid = list(range(2, 23))
    pairs = DiscreteSampler(Marginal(timeline, np.arange(25) % 2)).draw(None, random())
    assert pairs.reference[0].tolist() == valid
    assert pairs.negative[0].tolist() == valid
    assert TimeSampler(timeline, [4]).draw(None, random()).reference[0].tolist() == valid[:-4]


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("dimensions", [1, 2, 3, 16, 17, 300])
def test_nearest_agrees_with_all_distances(dimensions, ties):
    generator = random(dimensions)
    points = generator.normal(size=(300, dimensions))
    if ties:
        points = points[generator.integers(0, 20, 300)]
    queries = generator.normal(size=(200, dimensions)) * 1.5
    found = Nearest(points, np.arange(1000, 1300)).draw(queries, random()) - 1000
    distances = ((queries[:, None] - points) ** 2).sum(2)
    np.testing.assert_allclose(distances[np.arange(200), found], distances.min(1), rtol=1e-4)
    if ties:  # equal labels are drawn alike
        many = Nearest(points, np.arange(300)).draw(np.repeat(points[:1], DRAWS // 4, 0), random())
        assert fits(many, (points == points[0]).all(1))


def test_angles_are_points_on_a_circle_and_other_columns_stay():
    space = LabelSpace(2, period=[None, 2 * np.pi])
    near, far = np.array([[1.0, 0.05]]), np.array([[1.0, 6.2]])
    assert np.linalg.norm(space.points(near) - space.points(far)) == pytest.approx(0.133, abs=1e-3)
    with pytest.raises(HapteraError, match="3 entries"):
        LabelSpace(2, [1, 2, 3])


def test_held_out_share_and_training_share_have_no_window_in_common():
    offset = Offset(5, 5)
    first, last = (Timeline([100, 57], offset, share=share) for share in ((0.0, 0.8), (0.8, 1.0)))
    for session in (0, 1):
        seen = {int(sample) for one in first.valid[session].all() for sample in offset.positions(one)}
        held = {int(sample) for one in last.valid[session].all() for sample in offset.positions(one)}
        assert seen
        assert held
        assert not seen & held
