import numpy as np

from haptera.live.safety import Safety
from haptera.live.settings import GuardSettings


def safety(**settings):
    return Safety(GuardSettings(quarantine=100, probation=200, **settings))


def pass_images(one, images, learnt=True, batch=10):
    """Let images pass; return the decisions."""
    found = [one.advance(batch, learnt and one.adapts) for _ in range(images // batch)]
    return [decision for decision in found if decision is not None]


def test_an_adapter_that_is_sent_away_rests_proves_itself_and_comes_back():
    one = safety()
    assert one.serves
    pass_images(one, 400)
    decision = one.fall("it says one class")
    assert decision.event == "fallback"
    assert "it says one class" in decision.sentence
    assert (one.adapts, one.serves, one.compares) == (False, False, True)
    pass_images(one, 100)
    assert (one.phase, one.adapts, one.serves) == ("probation", True, False)
    decisions = pass_images(one, 790)
    assert one.phase == "probation"  # twice the 400 images after which it had fallen
    assert {each.event for each in decisions} == {"reset"}
    (back,) = [each for each in pass_images(one, 20) if each.event == "return"]
    assert one.serves
    assert "800" in back.sentence


def test_it_is_reset_four_times_as_often_as_it_fell():
    one = safety()
    pass_images(one, 400)
    one.fall("a sign")
    pass_images(one, 100)
    assert [each.numbers["learnt"] for each in pass_images(one, 300)] == [100, 100, 100]


def test_every_further_fall_doubles_the_quarantine():
    one, lengths = safety(), []
    for _ in range(9):
        pass_images(one, 20)
        lengths.append(one.fall("again").numbers["quarantine"])
        pass_images(one, lengths[-1])
    assert lengths == [100, 200, 400, 800, 1600, 3200, 6400, 6400, 6400]


def test_a_fall_on_probation_is_not_called_a_fall_back():
    one = safety()
    one.fall("a sign")
    pass_images(one, 100)
    assert one.fall("a sign").event == "reset"


def test_batches_that_are_not_learnt_from_prove_nothing():
    one = safety()
    one.fall("a sign")
    pass_images(one, 100)
    pass_images(one, 10_000, learnt=False)
    assert one.phase == "probation"


def test_evidence_of_labels_and_anchors_sends_it_away():
    for name in ("labels", "anchors"):
        one = safety()
        assert one.verdict() is None
        getattr(one, name).update(np.full(64, -1.0))
        decision = one.verdict()
        assert decision is not None
        assert decision.numbers["difference"] == -1
        assert one.phase == "quarantine"
        assert one.verdict() is None  # it begins anew


def test_a_shadow_never_serves():
    one = safety(shadow=True)
    assert (one.adapts, one.serves, one.compares) == (True, False, True)


def test_safety_goes_on_from_its_state():
    one, two = safety(), safety()
    pass_images(one, 400)
    one.fall("a sign")
    pass_images(one, 150)
    two.restore(one.state())
    assert [each.sentence for each in pass_images(one, 900)] == [each.sentence for each in pass_images(two, 900)]
    assert two.phase == one.phase == "adapted"
