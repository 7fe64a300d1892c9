"""The laws of adapters."""

import copy
from collections.abc import Callable
from contextlib import suppress
from functools import partial

import torch
from torch import nn

from haptera.adapters import Adapter
from haptera.adapters.wrapper import Wrapper
from haptera.batch import Batch
from haptera.errors import HapteraError, NotApplicable
from haptera.modules import copy_modules, unwrap
from haptera.testing.batchnorm_networks import batchnorm_networks, convolutional_networks
from haptera.testing.image_text import image_text_model
from haptera.testing.law import demand, run_laws
from haptera.testing.networks import as_it_is, awkward_networks
from haptera.testing.states import (
    a_state_belongs_to_its_model,
    answers,
    callers_model_can_be_trained,
    callers_model_is_unchanged,
    calls_from_threads_do_not_mix,
    copies_go_on_by_themselves,
    distance,
    equal,
    own_answer,
    picture,
    reset_is_exact,
    settings_of,
    state_of,
    state_survives_a_round_trip,
)

Make = Callable[..., Adapter]


def learning_rate_zero_is_the_parent(make: Make, model: nn.Module, batches: list[torch.Tensor]) -> None:
    """With a learning rate of 0 it predicts what its parent, which does not learn, predicts.

    But for rounding: where a gradient is needed, torch takes other kernels.
    """
    if "lr" not in settings_of(make):
        raise NotApplicable("there is no learning rate")
    adapter = make(model, lr=0.0)
    away = distance(answers(adapter, batches), answers(adapter.parent(model), batches))
    demand(away < 1e-5, f"lr=0 differs from the parent by {away:.1e}")


def learning_rate_zero_is_the_parent_offline(make: Make, model: nn.Module, batches: list[torch.Tensor]) -> None:
    """The same where it learns from a whole stream before it predicts, whatever the size of the last batch."""
    if "lr" not in settings_of(make):
        raise NotApplicable("there is no learning rate")
    adapter = make(model, lr=0.0)
    adapter.adapt([Batch(inputs, None, torch.arange(len(inputs)), {}) for inputs in (batches[0], batches[1][:2])])
    away = distance(answers(adapter.predictor(), batches[:2]), answers(adapter.parent(model), batches[:2]))
    demand(away < 1e-5, f"after a whole stream, lr=0 differs from the parent by {away:.1e}")


def predicting_changes_nothing(make: Make, model: nn.Module, batches: list[torch.Tensor]) -> None:
    """A pass that only predicts changes nothing that a later step sees."""
    plain, looking = make(model), make(model)
    for adapter in (plain, looking):
        answers(adapter, batches[:1])
    looking.frozen = True
    answers(looking, [batches[1], batches[2][:2]])
    looking.frozen = False
    demand(state_of(looking) == state_of(plain), "predicting, while frozen, changes the state")
    demand(
        equal(answers(looking, batches[3:]), answers(plain, batches[3:])),
        "predicting, while frozen, changes what follows",
    )


def infinite_prior_is_the_model(make: Make, model: nn.Module, batches: list[torch.Tensor]) -> None:
    """With an infinite prior its parent predicts what the model predicts, and so does it with a learning rate of 0."""
    if "prior" not in settings_of(make):
        raise NotApplicable("there is no prior")
    still = {name: value for name, value in (("lr", 0.0), ("window", 0)) if name in settings_of(make)}
    adapter = make(model, prior=float("inf"), **still)
    batches = batches[:2]
    if adapter.parent_label != "none":
        raise NotApplicable("its parent is more than the model")
    with torch.no_grad():
        plain = [model.eval()(inputs) for inputs in batches]
        alone = [model(inputs[:1]) for inputs in batches]
    others = {"the parent": adapter.parent(model)}
    if "lr" in still and distance([outputs[:1] for outputs in plain], alone) < 1e-5:  # else it matters who is together
        others["it, at lr=0,"] = adapter
    for name, other in others.items():
        away = distance(answers(other, batches), plain)
        demand(away < 1e-5, f"with an infinite prior {name} differs from the model by {away:.1e}")


def memory_layout_does_not_matter(make: Make, model: nn.Module, batches: list[torch.Tensor]) -> None:
    """In the memory layout that it chooses for a model, it predicts and learns what it does in contiguous memory."""
    chosen, contiguous = make(model), make(model)
    (contiguous.innermost if isinstance(contiguous, Wrapper) else contiguous)._channels_last = False
    away = distance(answers(chosen, batches[:2]), answers(contiguous, batches[:2]))
    demand(away < 1e-4, f"in the layout it chose it differs from contiguous memory by {away:.1e}")


def frozen_does_not_learn(make: Make, model: nn.Module, batches: list[torch.Tensor]) -> None:
    """With `frozen=True` the state stays and a batch gets the same predictions again."""
    adapter = make(model, frozen=True)
    before = state_of(adapter)
    once, again = answers(adapter, batches[:1]), answers(adapter, batches[:1])
    demand(state_of(adapter) == before, "frozen, and the state changed")
    demand(equal(once, again), "frozen, and predictions changed")


def evaluation_mode_does_not_matter(make: Make, model: nn.Module, batches: list[torch.Tensor]) -> None:
    """`.eval()` and `.train()` on the adapter change nothing about what it does."""
    plain, evaluated = answers(make(model), batches[:2]), answers(make(model).eval(), batches[:2])
    demand(equal(plain, evaluated), ".eval() changes the predictions")


def a_batch_of_one_works_or_says_why(make: Make, model: nn.Module, batches: list[torch.Tensor]) -> None:
    """One sample is predicted, or an error of haptera's says why it cannot be."""
    try:
        outputs = make(model)(batches[0][:1])
    except HapteraError:
        return
    demand(len(outputs) == 1 and bool(torch.isfinite(outputs).all()), "a batch of one gives no finite prediction")


def works_or_says_why(make: Make, model: nn.Module, batches: list[torch.Tensor]) -> None:
    """Any network is adapted correctly, or refused in one sentence; it is left as it was in both cases.

    Correctly: finite, in the shapes of the model's own outputs, the same after `reset` and in a copy, at `lr=0` its
    parent, and learning where there is a loss.
    """
    before = picture(model)
    try:
        adapter = make(model)
        outputs = answers(adapter, batches)
        record = dict(adapter.record)
        adapter.reset()
        again = answers(adapter, batches)
    except HapteraError as error:
        demand("\n" not in str(error).strip() and len(str(error)) > 20, f"it does not refuse in one sentence: {error}")
        demand(picture(model) == before, "it refuses, and changed the caller's model")
        return
    demand(picture(model) == before, "the caller's model was changed")
    demand(equal(outputs, again), "after reset the same batches get other predictions")
    with as_it_is():
        network = copy_modules(unwrap(model)).eval()
    expected, later = answers(partial(own_answer, network), batches), answers(partial(own_answer, network), batches)
    demand([out.shape for out in outputs] == [out.shape for out in expected], "outputs do not have the model's shapes")
    demand(all(bool(torch.isfinite(out).all()) for out in [*outputs, *expected]), "predictions are not finite")
    with suppress(HapteraError):
        adapter.release()
    with suppress(HapteraError), as_it_is():
        copied = copy.deepcopy(adapter)
        demand(equal(answers(copied, batches), answers(adapter, batches)), "a copy goes on to other predictions")
    if "lr" in settings_of(make):
        inner = adapter.innermost if isinstance(adapter, Wrapper) else adapter
        waits = "loss" not in record or inner.memory.get("pending")
        demand(bool(waits or record.get("change", 1.0) > 0), "there is a loss, and nothing was learnt")
        if equal(expected, later):  # else the number of passes matters
            still = make(model, lr=0.0)
            away = distance(answers(still, batches), answers(still.parent(model), batches))
            enough = 1e-5 if expected[0].dtype in (torch.float32, torch.float64) else 2e-2
            demand(away < enough, f"lr=0 differs from the parent by {away:.1e}")


ADAPTER_LAWS = (
    callers_model_is_unchanged,
    a_state_belongs_to_its_model,
    callers_model_can_be_trained,
    reset_is_exact,
    state_survives_a_round_trip,
    copies_go_on_by_themselves,
    calls_from_threads_do_not_mix,
    learning_rate_zero_is_the_parent,
    learning_rate_zero_is_the_parent_offline,
    predicting_changes_nothing,
    infinite_prior_is_the_model,
    memory_layout_does_not_matter,
    frozen_does_not_learn,
    evaluation_mode_does_not_matter,
    a_batch_of_one_works_or_says_why,
)

FURTHER: dict[Callable[..., None], tuple[Callable[[], dict[str, nn.Module]], int]] = {
    infinite_prior_is_the_model: (batchnorm_networks, 1),
    memory_layout_does_not_matter: (convolutional_networks, 3),
}
"""Laws that are also checked on networks of their own, which take so many channels."""


def example_models() -> dict[str, nn.Module]:
    """Small networks with each kind of normalisation and with none, their statistics away from the defaults."""
    from haptera.models import LeNet, ResNet, ViT

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        models: dict[str, nn.Module] = {
            "batch": ResNet(width=4, stem=2),
            "group": ResNet(width=4, stem=2, norm="group"),
            "layer": ViT(size=16, width=16, depth=1),
            "none": LeNet(size=16, width=2),
        }
        for model in models.values():
            model.train()
            model(torch.rand(16, 1, 16, 16))
            model.eval()
    return models


def example_batches(channels: int = 1) -> list[torch.Tensor]:
    """Four batches of small images, grey ones by default."""
    generator = torch.Generator().manual_seed(1)
    return [torch.rand(6, channels, 16, 16, generator=generator) * 0.7 for _ in range(4)]


def check_adapter(make: Make) -> dict[str, str]:
    """Every law on a class of adapters, on every kind of model to which it applies; one law on awkward networks."""
    cases = []
    for model in (*example_models().values(), image_text_model()):
        try:
            make(model)
        except NotApplicable:
            continue
        cases.append((make, model, example_batches()))
    if not cases:
        kinds = "BatchNorm, GroupNorm, LayerNorm and without, and one of images and texts"
        return {"applies_to_some_model": f"it refuses models with {kinds}"}
    verdict = run_laws(ADAPTER_LAWS, cases)
    for law, (networks, channels) in FURTHER.items():
        more = [(make, model, example_batches(channels)) for model in networks().values()]
        verdict[law.__name__] = verdict[law.__name__] or run_laws([law], more)[law.__name__]
    awkward = [(make, *build()) for build in awkward_networks().values()]
    return verdict | run_laws([works_or_says_why], awkward)
