"""The two-point model: closed forms against automatic differentiation, and the promise of proposition 1."""

import numpy as np
import pytest
import torch

from haptera.theory import two_points

OTHER = np.array([[1.2, 0.3], [-0.4, 0.8]])


def loss(w_student, w_teacher, points, s, t):
    """(3.6) with its sign corrected: cross-entropy of the student to the teacher's soft labels."""
    teacher, student = points @ w_teacher / t, points @ w_student / s
    log = torch.nn.functional.logsigmoid
    return -(teacher.sigmoid() * log(student) + (-teacher).sigmoid() * log(-student)).sum()


@pytest.mark.parametrize("points", [two_points.POINTS, OTHER])
@pytest.mark.parametrize("stop", [True, False])
def test_the_dynamics_are_the_gradient_of_the_loss(points, stop):
    x = torch.tensor(points)
    w = torch.tensor([0.7, -0.4], dtype=torch.float64, requires_grad=True)
    loss(w, w.detach() if stop else w, x, 0.8, 0.5).backward()
    y = points @ w.detach().numpy()
    assert two_points.velocity(y, y, 0.8, 0.5, points, stop) == pytest.approx(points @ -w.grad.numpy())


@pytest.mark.parametrize("points", [two_points.POINTS, OTHER])
@pytest.mark.parametrize("temperatures", [(1.0, 1.0), (0.5, 2.0), (2.0, 0.3), (1.0, 1.9)])
@pytest.mark.parametrize("stop", [True, False])
def test_jacobian_and_eigenvalues_agree_with_automatic_differentiation(points, temperatures, stop):
    s, t = temperatures
    gram = torch.tensor(points @ points.T)

    def velocity(state):
        student, teacher = (state[:2], state[2:]) if stop else (state, state)
        sig = torch.sigmoid
        pull = (sig(teacher / t) * sig(-student / s) - sig(-teacher / t) * sig(student / s)) / s
        if not stop:
            pull = pull + sig(teacher / t) * sig(-teacher / t) * student / (s * t)
            return gram @ pull
        return torch.cat([gram @ pull, 1.7 * (student - teacher)])

    zero = torch.zeros(4 if stop else 2, dtype=torch.float64)
    expected = torch.autograd.functional.jacobian(velocity, zero).numpy()
    settings = {"points": points, "stop_gradient": stop, "teacher_rate": 1.7}
    assert two_points.jacobian(s, t, **settings) == pytest.approx(expected)
    found = two_points.eigenvalues(s, t, **settings)
    assert np.sort_complex(found) == pytest.approx(np.sort_complex(np.linalg.eigvals(expected)), abs=1e-9)


@pytest.mark.parametrize("stop", [True, False])
def test_an_eigenvalue_is_positive_exactly_where_it_is_safe(stop):
    for s in np.geomspace(0.01, 10, 13):
        for t in np.geomspace(0.013, 11, 13):
            unstable = two_points.eigenvalues(s, t, OTHER, stop).real.max() > 0
            assert unstable == bool(two_points.safe(s, t, stop))


@pytest.mark.parametrize("stop", [True, False])
@pytest.mark.parametrize(("momentum", "start"), [(0.9, (0.5, 0.5)), (0.0, (0.5, 0.5)), (0.9, (0.6, 0.3))])
def test_the_simulation_never_collapses_where_the_proposition_says_so(stop, momentum, start):
    diagram = two_points.phase_diagram(
        np.geomspace(1e-3, 10, 24), stop_gradient=stop, momentum=momentum, start=start, steps=600
    )
    assert not (diagram["safe"] & diagram["collapsed"]).any()
    assert diagram["collapsed"].mean() > 0.1


def test_equal_temperatures_with_a_stopped_gradient_do_not_move():
    diagram = two_points.phase_diagram([0.5, 1.0, 2.0], steps=50)
    same = diagram[diagram["student_temperature"] == diagram["teacher_temperature"]]
    assert same["kept"].to_numpy() == pytest.approx(1.0)
