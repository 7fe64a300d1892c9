"""Laws of latents: draws against their densities, in many dimensions and at extreme concentrations."""

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

from haptera.analyses.identify.laws import (
    GeneralisedNormal,
    Uniform,
    VonMisesFisher,
    laplace,
    log_mean_exponential,
    log_sphere_area,
    normal,
    read_law,
)
from haptera.errors import HapteraError

DRAWS = 20_000
SURE = 1e-4
"""A KS test with a fixed seed that fails by chance once in ten thousand laws."""


def pole(dimensions: int, count: int = DRAWS) -> np.ndarray:
    return np.broadcast_to(np.eye(1, dimensions)[0], (count, dimensions))


def random(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.mark.parametrize("kappa", [0.0, 0.1, 10.0, 1e3, 1e8])
@pytest.mark.parametrize("dimensions", [2, 3, 10, 300])
def test_von_mises_fisher_heights_have_their_density(dimensions, kappa):
    """The height w above the centre has density ∝ exp(κw) (1 − w²)^((n−3)/2); in the gap 1 − w, by its own scale."""
    drawn = VonMisesFisher(kappa).draw("sphere", pole(dimensions, 5000), random())
    np.testing.assert_allclose(np.linalg.norm(drawn, axis=1), 1)
    sideways = np.linalg.norm(drawn[:, 1:], axis=1)
    angle = np.arctan2(sideways, drawn[:, 0])
    grid = np.linspace(max(angle.min() * 0.5, 0), min(angle.max() * 1.5, np.pi), 40_001)
    with np.errstate(divide="ignore"):
        log_density = -2 * kappa * np.sin(grid / 2) ** 2 + (dimensions - 2) * np.log(np.sin(grid))
    density = np.exp(log_density - log_density[np.isfinite(log_density)].max())
    cumulative = np.concatenate([[0], np.cumsum((density[1:] + density[:-1]) / 2)])
    cdf = cumulative / cumulative[-1]
    assert stats.kstest(angle, lambda x: np.interp(x, grid, cdf)).pvalue > SURE


def test_von_mises_fisher_is_scipys():
    found = VonMisesFisher(5.0)
    centre = np.array([0.6, 0.0, 0.8])
    points = Uniform().draw("sphere", np.zeros((50, 3)), random())
    expected = stats.vonmises_fisher(centre, 5.0).logpdf(points)
    np.testing.assert_allclose(found.log_density("sphere", points, np.broadcast_to(centre, (50, 3))), expected)


def test_von_mises_fisher_is_around_its_own_centre():
    centres = Uniform().draw("sphere", np.zeros((DRAWS, 4)), random())
    drawn = VonMisesFisher(3.0).draw("sphere", centres, random(1))
    cosine = (drawn * centres).sum(1)
    at_pole = VonMisesFisher(3.0).draw("sphere", pole(4), random(2))[:, 0]
    assert stats.ks_2samp(cosine, at_pole).pvalue > SURE


@pytest.mark.parametrize("dimensions", [2, 10])
def test_uniform_on_the_sphere_has_uniform_moments(dimensions):
    drawn = Uniform().draw("sphere", np.zeros((DRAWS, dimensions)), random())
    assert np.abs(drawn.mean(0)).max() < 5 / np.sqrt(DRAWS * dimensions)
    np.testing.assert_allclose(drawn.T @ drawn / DRAWS, np.eye(dimensions) / dimensions, atol=0.02)


UNBOUNDED = [(laplace(0.05), stats.laplace(scale=0.05)), (normal(2.0), stats.norm(scale=2.0))]
UNBOUNDED += [(GeneralisedNormal(0.3, 3.0), stats.gennorm(3.0, scale=0.3))]


@pytest.mark.parametrize(("law", "known"), UNBOUNDED, ids=["laplace", "normal", "beta 3"])
def test_generalised_normal_laws_are_scipys(law, known):
    drawn = law.draw("unbounded", np.full((DRAWS, 2), 1.5), random()) - 1.5
    assert stats.kstest(drawn.ravel(), known.cdf).pvalue > SURE
    points = random(1).normal(size=(7, 3))
    np.testing.assert_allclose(
        law.log_density("unbounded", points, np.zeros((7, 3))), known.logpdf(points).sum(1), rtol=1e-9
    )


@pytest.mark.parametrize(
    "law", [laplace(0.05), normal(0.05), GeneralisedNormal(0.05, 3.0), laplace(100.0), laplace(1e-7)]
)
@pytest.mark.parametrize("centre", [0.0, 0.03, 0.5, 1.0])
def test_in_the_box_a_law_is_truncated_and_not_clamped(law, centre):
    drawn = law.draw("box", np.full((DRAWS, 1), centre), random())[:, 0]
    assert drawn.min() >= 0
    assert drawn.max() <= 1
    low, high = law._cdf(np.array([-centre, 1 - centre]))
    expected = stats.kstest(drawn, lambda x: (law._cdf(x - centre) - low) / (high - low))
    assert expected.pvalue > SURE
    assert len(np.unique(drawn)) > 0.9 * DRAWS or law.scale < 1e-6  # no heap on a side


def test_the_density_in_the_box_has_mass_one():
    law = laplace(0.05)
    for centre in (0.0, 0.4):
        mass = quad(lambda x, c=centre: np.exp(law.log_density("box", np.array([[x]]), np.array([[c]]))[0]), 0, 1,
                    points=[centre])[0]  # fmt: skip
        assert mass == pytest.approx(1, abs=1e-6)


def test_noise_on_the_sphere_stays_on_it():
    drawn = normal(0.05).draw("sphere", pole(5), random())
    np.testing.assert_allclose(np.linalg.norm(drawn, axis=1), 1)
    assert drawn[:, 1].std() == pytest.approx(0.05, rel=0.05)


@pytest.mark.parametrize("dimensions", [2, 3, 8])
def test_the_mean_exponential_is_its_integral(dimensions):
    kappa, power = 3.0, (dimensions - 2)
    top = quad(lambda a: np.exp(kappa * np.cos(a)) * np.sin(a) ** power, 0, np.pi)[0]
    assert log_mean_exponential(kappa, dimensions) == pytest.approx(
        np.log(top / quad(lambda a: np.sin(a) ** power, 0, np.pi)[0])
    )


def test_the_area_of_the_sphere_is_the_known_one():
    assert np.exp(log_sphere_area(3)) == pytest.approx(4 * np.pi)


def test_laws_are_read_and_mistakes_named():
    assert read_law("normal=2") == normal(2.0)
    assert read_law("gennorm=0.05,3") == GeneralisedNormal(0.05, 3.0)
    for text, message in (
        ("laplce=1", "did you mean 'laplace'"),
        ("laplace", "0 numbers, 1 expected"),
        ("vmf=x", "a number after ="),
        ("vmf=-1", "at least 0"),
        ("laplace=0", "more than 0"),
    ):
        with pytest.raises(HapteraError, match=message):
            read_law(text)
    with pytest.raises(HapteraError, match="lives on the sphere"):
        VonMisesFisher(1.0).draw("box", np.zeros((1, 2)), random())
    with pytest.raises(HapteraError, match="needs a sphere or a box"):
        Uniform().draw("unbounded", np.zeros((1, 2)), random())
