import numpy as np
import pytest

from haptera.live.signs import RecentMean, Signs, entropy, probabilities


def answers(classes, count=64, others=0.0):
    """One-hot answers that go through some classes of ten."""
    hot = np.eye(10)[np.resize(classes, count)]
    return (1 - others) * hot + others / 10


def play(signs, adapted, unadapted, batches):
    """Signs that were found, and how many batches the unadapted model answered."""
    found, asked = [], 0
    for number in range(batches):
        looking = signs.looking
        asked += looking
        sign = signs.look(adapted(number), unadapted(number) if looking else None)
        if sign is not None:
            found.append((number, sign))
            break
    return found, asked


def test_an_adapter_like_the_unadapted_model_is_looked_at_rarely():
    signs = Signs(0.1, 0.2, 256, 0.02)
    found, asked = play(signs, lambda _: answers(range(10)), lambda _: answers(range(10)), 450)
    assert not found
    assert asked == 4 * 3  # at the beginning, and after each 200 batches


def test_a_collapse_is_found_within_two_looks():
    signs = Signs(0.1, 0.2, 256, 0.02)
    found, _ = play(signs, lambda n: answers(range(10)) if n < 50 else answers([3]), lambda _: answers(range(10)), 100)
    ((number, sign),) = found
    assert 50 <= number <= 58
    assert "class 3" in sign.sentence
    assert sign.numbers["largest"] > sign.numbers["largest_unadapted"] + 0.1


def test_fewer_classes_are_a_sign_where_none_is_large():
    signs = Signs(0.5, 0.2, 256, 0.02)
    found, _ = play(signs, lambda n: answers(range(10 if n < 20 else 5)), lambda _: answers(range(10)), 60)
    assert found
    assert found[0][1].numbers["classes"] == pytest.approx(5, abs=1)


def test_one_class_that_both_models_see_is_not_a_collapse():
    signs = Signs(0.1, 0.2, 256, 0.02)
    sorted_stream = lambda n: answers([n // 20 % 10])  # noqa: E731
    found, asked = play(signs, sorted_stream, sorted_stream, 400)
    assert not found
    assert asked < 400


def test_a_collapse_that_the_unadapted_model_shared_is_found_when_that_recovers():
    signs = Signs(0.1, 0.2, 256, 0.02)
    adapted = lambda n: answers(range(10)) if n < 20 else answers([0])  # noqa: E731
    unadapted = lambda n: answers([0]) if 20 <= n < 60 else answers(range(10))  # noqa: E731
    ((number, _),), _ = play(signs, adapted, unadapted, 120)
    assert 60 <= number <= 70


def test_stricter_limits_find_what_others_do_not():
    adapted, unadapted = answers([*range(10), 0], 110), answers(range(10), 110)
    assert Signs(0.1, 0.2, 100, 0.02).look(adapted, unadapted) is None
    assert Signs(0.1, 0.2, 100, 0.02).look(adapted, unadapted, strictness=2.0) is not None


def test_signs_go_on_from_their_state():
    one = Signs(0.1, 0.2, 128, 0.02)
    play(one, lambda _: answers(range(10)), lambda _: answers(range(10)), 7)
    two = Signs(0.1, 0.2, 128, 0.02)
    two.restore(one.state())
    (first,), _ = play(one, lambda _: answers([1]), lambda _: answers(range(10)), 30)
    (second,), _ = play(two, lambda _: answers([1]), lambda _: answers(range(10)), 30)
    assert first == second
    assert np.array_equal(one.state()["recent"]["value"], two.state()["recent"]["value"])


def test_a_recent_mean_is_the_plain_mean_at_first():
    mean, values = RecentMean(1000), np.random.default_rng(0).random((30, 3))
    for part in np.split(values, [5, 17]):
        mean.add(part)
    assert mean.value == pytest.approx(values.mean(0))


def test_entropy_and_probabilities_are_those_of_scipy():
    from scipy.special import softmax
    from scipy.stats import entropy as slow

    logits = np.random.default_rng(3).normal(0, 30, (5, 7))
    assert probabilities(logits) == pytest.approx(softmax(logits, 1))
    assert entropy(softmax(logits, 1).mean(0)) == pytest.approx(slow(softmax(logits, 1).mean(0)))
    assert entropy(np.array([1.0, 0.0])) == 0
