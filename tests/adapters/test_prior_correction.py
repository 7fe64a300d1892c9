"""Prior correction: the smoothed prior by loops, what multiplies what, and the window of recent predictions."""

import pytest
import torch
from torch import nn

from haptera.adapters import BatchNorm, NoAdaptation, PriorCorrection, Tent
from haptera.adapters.prior_correction import smooth_prior
from haptera.errors import HapteraError

LOGITS = torch.randn(6, 4, generator=torch.Generator().manual_seed(2)) * 2


def slow_prior(rows):
    n, classes = len(rows), len(rows[0])
    mean = [sum(row[c] for row in rows) / n for c in range(classes)]
    smoothing = max(1 / n, 1 / classes) / max(mean)
    return [(value + smoothing) / (1 + smoothing * classes) for value in mean]


@pytest.mark.parametrize("n", [1, 2, 6])
def test_the_prior_is_the_smoothed_mean_prediction(n):
    rows = LOGITS[:n].softmax(1)
    prior = smooth_prior(rows)
    assert prior.tolist() == pytest.approx(slow_prior(rows.tolist()), abs=1e-6)
    assert float(prior.sum()) == pytest.approx(1)


def test_probabilities_are_multiplied_and_made_to_sum_to_one():
    prior = torch.tensor(slow_prior(LOGITS.softmax(1).tolist()))
    product = LOGITS.softmax(1) * prior
    outputs = PriorCorrection(NoAdaptation)(nn.Identity())(LOGITS)
    assert torch.allclose(outputs.softmax(1), product / product.sum(1, keepdim=True), atol=1e-6)


def test_the_public_code_multiplies_logits_and_none_multiplies_nothing():
    prior = torch.tensor(slow_prior(LOGITS.softmax(1).tolist()))
    assert torch.allclose(PriorCorrection(NoAdaptation, "logits")(nn.Identity())(LOGITS), LOGITS * prior, atol=1e-6)
    assert torch.equal(PriorCorrection(NoAdaptation, "none")(nn.Identity())(LOGITS), LOGITS)


def test_one_image_alone_keeps_its_class_and_shifted_logits_their_prediction():
    adapter = PriorCorrection(NoAdaptation)(nn.Identity())
    assert all(int(adapter(row[None]).argmax()) == int(row.argmax()) for row in LOGITS)
    assert torch.allclose(adapter(LOGITS + 7).softmax(1), adapter(LOGITS).softmax(1), atol=1e-6)


def test_with_a_window_the_prior_is_that_of_the_last_predictions():
    adapter = PriorCorrection(NoAdaptation)(nn.Identity(), window=4)
    outputs = torch.cat([adapter(row[None]) for row in LOGITS])
    prior = torch.tensor(slow_prior(LOGITS[-4:].softmax(1).tolist()))
    expected = LOGITS[-1].softmax(0) * prior
    assert torch.allclose(outputs[-1].softmax(0), expected / expected.sum(), atol=1e-6)
    adapter.frozen = True
    before = adapter.memory["recent"].clone()
    adapter(LOGITS[:1])
    assert torch.equal(adapter.memory["recent"], before)


def test_empty_and_not_finite_predictions_stay_as_they_are():
    adapter = PriorCorrection(NoAdaptation)(nn.Identity())
    assert adapter(LOGITS[:0]).shape == (0, 4)
    broken = LOGITS.clone()
    broken[0, 0] = float("nan")
    assert torch.equal(adapter(broken).nan_to_num(9.0), broken.nan_to_num(9.0))


def test_the_parent_is_corrected_as_well_and_its_label_names_it():
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 3))
    adapter = PriorCorrection(Tent)(model, prior=0.0)
    assert adapter.parent_label == "batchnorm:prior=0,prior_correction=probabilities"
    expected = PriorCorrection(BatchNorm)(model, prior=0)(LOGITS)
    assert torch.allclose(adapter.parent(model)(LOGITS), expected, atol=1e-6)
    assert PriorCorrection(NoAdaptation, "logits")(model).parent_label == "none:prior_correction=logits"
    assert PriorCorrection(NoAdaptation, "none")(model).parent_label == "none"


def test_outputs_without_classes_are_refused():
    with pytest.raises(HapteraError, match="PriorCorrection is for logits"):
        PriorCorrection(NoAdaptation)(nn.Identity())(torch.rand(3, 4, 5))
