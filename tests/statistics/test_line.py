"""Fits against other ways to the same line, and left-out predictions against fits without the model."""

import numpy as np
import pytest
from scipy.optimize import linprog, minimize
from scipy.special import logit, ndtr, ndtri
from scipy.stats import linregress

from haptera.errors import HapteraError
from haptera.statistics.line import FITS, ShiftLine, compare_fits, fit, r_squared
from haptera.statistics.solvers import HUBER


def models(seed=0, size=15, noise=0.02):
    """Accuracies near a probit line."""
    generator = np.random.default_rng(seed)
    x = generator.uniform(0.3, 0.9, size)
    return x, np.clip(ndtr(0.9 * ndtri(x) - 0.3) + generator.normal(0, noise, size), 0.01, 0.99)


@pytest.mark.parametrize(("kind", "scale"), [("linear", np.asarray), ("probit", ndtri), ("logit", logit)])
def test_least_squares_on_each_scale(kind, scale):
    x, y = models()
    slope, intercept = np.polyfit(scale(x), scale(y), 1)
    found = fit(x, y, kind)
    assert found.line.slope == pytest.approx(slope)
    assert found.line.intercept == pytest.approx(intercept)
    assert scale(found.line([0.4, 0.8])) == pytest.approx(slope * scale(np.array([0.4, 0.8])) + intercept)
    assert found.residual == pytest.approx(y - found.line(x))


def basis_of_two_pieces(x, switch, joined):
    behind = x > switch
    columns = [np.ones_like(x), x, behind * (x - switch)] if joined else [~behind, x * ~behind, behind, x * behind]
    return np.stack(columns, axis=1).astype(float)


@pytest.mark.parametrize("joined", [True, False])
def test_two_pieces_at_a_given_rank(joined):
    x, y = models()
    switch = np.sort(x)[5]
    basis = basis_of_two_pieces(x, switch, joined)
    expected = basis @ np.linalg.lstsq(basis, y, rcond=None)[0]
    found = fit(x, y, "two_piece", switch=6, joined=joined)
    assert found.line.switch == switch
    assert found.line(x) == pytest.approx(expected)
    left, right = found.line.pieces
    pieces = np.where(x > switch, right["slope"] * x + right["intercept"], left["slope"] * x + left["intercept"])
    assert pieces == pytest.approx(expected)


@pytest.mark.parametrize("joined", [True, False])
def test_the_best_switch_leaves_the_least_squares(joined):
    x, y = models(1)
    squares = [(fit(x, y, "two_piece", switch=rank, joined=joined).residual ** 2).sum() for rank in range(2, 14)]
    best = fit(x, y, "two_piece", joined=joined)
    assert (best.residual**2).sum() == pytest.approx(min(squares))


def test_chebyshev_is_the_solution_of_the_linear_programme():
    for seed in range(10):
        x, y = models(seed, size=12, noise=0.1)
        ones = np.ones_like(x)
        above = np.stack([-ones, -x, -ones], axis=1)
        below = np.stack([ones, x, -ones], axis=1)
        solved = linprog([0, 0, 1], np.vstack([above, below]), np.concatenate([-y, y]), bounds=(None, None))
        found = fit(x, y, "chebyshev")
        assert np.abs(found.residual).max() == pytest.approx(solved.fun, abs=1e-9)


@pytest.mark.parametrize(("kind", "scale"), [("robust", np.asarray), ("robust_probit", ndtri)])
def test_the_robust_line_minimises_hubers_loss(kind, scale):
    x, y = models(2)
    y[3] = 0.05
    found = fit(x, y, kind)
    u, v = scale(x), scale(y)
    here = np.array([float(found.line.intercept), float(found.line.slope)])
    spread = np.median(np.abs(v - here[0] - here[1] * u)) / 0.6745

    def loss(line):
        size = np.abs(v - line[0] - line[1] * u) / spread
        return np.where(size < HUBER, size**2 / 2, HUBER * size - HUBER**2 / 2).sum()

    best = minimize(loss, here + 0.1, method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12, "maxiter": 4000})
    assert loss(here) == pytest.approx(best.fun, rel=1e-3)


def test_the_robust_line_hardly_moves_for_an_outlier():
    x, y = models(3, noise=0.005)
    wrong = y.copy()
    wrong[4] = 0.01
    moved = {
        kind: abs(fit(x, y, kind).line(0.6) - fit(x, wrong, kind).line(0.6)) for kind in ("probit", "robust_probit")
    }
    assert moved["robust_probit"] < 0.25 * moved["probit"]


EXACT = ("linear", "probit", "logit", "chebyshev", "two_piece")


@pytest.mark.parametrize("kind", EXACT)
def test_what_a_left_out_model_was_predicted_to_have(kind):
    x, y = models(4)
    found = fit(x, y, kind)
    for place in range(len(x)):
        others = np.delete(x, place), np.delete(y, place)
        assert found.left_out[place] == pytest.approx(y[place] - fit(*others, kind).line(x[place]), abs=1e-8), place


@pytest.mark.parametrize("kind", ["robust", "robust_probit"])
def test_left_out_predictions_of_robust_lines_are_nearly_those_of_a_new_fit(kind):
    x, y = models(5, size=30)
    y[7] = 0.1
    found = fit(x, y, kind)
    refits = [y[i] - fit(np.delete(x, i), np.delete(y, i), kind).line(x[i]) for i in range(30)]
    assert found.left_out == pytest.approx(np.array(refits), abs=0.004)


@pytest.mark.parametrize("kind", FITS)
def test_a_batch_is_fitted_like_each_of_its_members(kind):
    x, y = np.stack([models(seed)[0] for seed in range(4)]), np.stack([models(seed)[1] for seed in range(4)])
    weights = np.random.default_rng(0).multinomial(15, np.full(15, 1 / 15), 4).astype(float)
    batch = fit(x, y, kind, weights=weights, switch=0.6 if kind == "two_piece" else None)
    for place in range(4):
        one = fit(x[place], y[place], kind, weights=weights[place], switch=0.6 if kind == "two_piece" else None)
        assert batch.line.coefficients[place] == pytest.approx(one.line.coefficients, abs=1e-5, nan_ok=True)
        expected = one.line(np.array([0.5, 0.7]))
        assert batch.line(np.array([0.5, 0.7]))[place] == pytest.approx(expected, abs=1e-5, nan_ok=True)
    assert np.isfinite(batch.line.coefficients).all(-1).sum() >= 3  # a draw may leave too few behind the switch


@pytest.mark.parametrize("kind", FITS)
def test_a_whole_weight_is_a_model_that_comes_so_often(kind):
    x, y = models(6)
    times = np.array([2, 0, 1, 1, 3, 1, 0, 1, 1, 1, 2, 1, 0, 1, 1])
    switch = 0.6 if kind == "two_piece" else None
    weighted = fit(x, y, kind, weights=times.astype(float), switch=switch)
    repeated = fit(np.repeat(x, times), np.repeat(y, times), kind, switch=switch)
    assert weighted.line.coefficients == pytest.approx(repeated.line.coefficients, abs=1e-4)


def test_fits_are_compared_by_what_they_say_about_left_out_models():
    x, y = models(7, size=40, noise=0.002)
    table = compare_fits(x, y, [f"m{i}" for i in range(40)])
    assert set(table["fit"]) == set(FITS)
    assert table["left_out"].is_monotonic_increasing
    assert table["fit"][0] in ("probit", "robust_probit")
    row = table.set_index("fit").loc["linear"]
    found = fit(x, y)
    assert row["r2"] == pytest.approx(np.corrcoef(x, y)[0, 1] ** 2)
    assert row["max_residual"] == pytest.approx(np.abs(found.residual).max())
    assert row["worst"] == f"m{np.abs(found.residual).argmax()}"
    assert row["left_out"] == pytest.approx(np.sqrt(np.mean(found.left_out**2)))


def test_r_squared_is_one_for_a_perfect_line_and_zero_for_the_mean():
    y = np.array([0.1, 0.4, 0.7])
    assert r_squared(y, np.zeros(3)) == 1
    assert r_squared(y, y - y.mean()) == 0


def test_accuracies_of_0_and_1_are_moved_inside_by_half_an_example():
    x, y = np.array([0.0, 0.5, 0.8, 1.0]), np.array([0.02, 0.4, 0.7, 1.0])
    moved = np.array([0.01, 0.5, 0.8, 0.99]), np.array([0.02, 0.4, 0.7, 0.995])
    assert fit(x, y, "probit", n=(50, 100)).line.slope == pytest.approx(fit(*moved, "probit").line.slope)
    with pytest.raises(HapteraError, match="an accuracy is 0 or 1"):
        fit(x, y, "probit")
    assert np.isfinite(fit(x, y, "linear").line.slope)


def test_points_that_determine_no_line_give_none():
    assert np.isnan(fit(np.full(4, 0.5), np.array([0.1, 0.2, 0.3, 0.4])).line.slope)
    assert np.isnan(fit(np.array([0.4, 0.5, 0.6]), np.array([0.1, 0.2, 0.3]), weights=np.array([3.0, 0, 0])).line.slope)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x, y: fit(x, y, "probitt"), "did you mean 'probit'"),
        (lambda x, y: fit(x[:2], y[:2]), "2 and 2 accuracies; three models or more"),
        (lambda x, y: fit(x, y[:-1]), "15 and 14 accuracies"),
        (lambda x, y: fit(x, y, "two_piece", switch=14), "model 14 of 15; 2 to 13"),
        (lambda x, y: fit(x[:4], y[:4], "two_piece"), None),
        (lambda x, y: fit(np.full(6, 0.5), y[:6], "two_piece"), "too few for two pieces"),
    ],
)
def test_what_cannot_be_fitted_is_refused(call, message):
    if message is None:
        assert np.isfinite(call(*models()).line.switch)
        return
    with pytest.raises(HapteraError, match=message):
        call(*models())


def test_slope_intercept_and_fit_of_a_shift_line_are_those_of_least_squares():
    random = np.random.default_rng(0)
    sizes = random.uniform(0, 2, 12)
    errors = 0.1 + 0.2 * sizes + random.normal(0, 0.02, 12)
    line, known = ShiftLine.fit(sizes, errors), linregress(sizes, errors)
    assert (line.slope, line.intercept) == (pytest.approx(known.slope), pytest.approx(known.intercept))
    assert line.r2 == pytest.approx(known.rvalue**2)


def test_predictions_stay_between_0_and_1():
    line = ShiftLine.fit(np.array([0.0, 1.0, 2.0]), np.array([0.0, 0.5, 0.9]))
    assert line.predict(10.0) == 1.0


def test_sizes_beyond_those_it_was_fitted_on_are_told():
    line = ShiftLine.fit(np.array([0.0, 0.5, 1.0]), np.array([0.1, 0.2, 0.3]))
    assert line.inside(0.7)
    assert not line.inside(1.2)


def test_a_flat_line_explains_nothing():
    assert ShiftLine.fit(np.array([0.0, 1.0, 2.0]), np.full(3, 0.2)).r2 == 0


@pytest.mark.parametrize("sizes", [[0.0, 1.0], [0.5, 0.5, 0.5]])
def test_too_few_sizes_are_refused(sizes):
    with pytest.raises(HapteraError, match="three shifts"):
        ShiftLine.fit(np.array(sizes), np.linspace(0, 1, len(sizes)))
