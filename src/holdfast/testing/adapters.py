"""The laws of adapters."""

import copy
import inspect
import sys
import tempfile
import threading
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from holdfast.adapters import Adapter
from holdfast.adapters.wrapper import Wrapper
from holdfast.batch import Batch
from holdfast.errors import HoldfastError, NotApplicable
from holdfast.testing.batchnorm_networks import batchnorm_networks
from holdfast.testing.convolutional_networks import convolutional_networks
from holdfast.testing.law import demand, run_laws

Make = Callable[..., Adapter]


def callers_model_is_unchanged(make: Make, model: nn.Module, batches: list[torch.Tensor]) -> None:
    """Weights, buffers, flags and hooks of the caller's model stay, and no gradient appears on it: not by calls,
    `reset`, loading a state, nor by `.to`, `.half` and the like on the adapter."""
    for training in (True, False):
        model.train(training)
        before = _picture(model)
        adapter = make(model)
        first = copy.deepcopy(adapter.state_dict())
        for inputs in batches[:2]:
            adapter(inputs)
        demand(_picture(model) == before, f"the caller's model was changed by calls (training={training})")
        adapter.load_state_dict(first)
        adapter.reset()
        demand(_picture(model) == before, f"the caller's model was changed by loading or reset (training={training})")
    adapter.to(torch.float64)(batches[0].double())
    adapter.half().to("cpu").float()
    demand(_picture(model) == before, "the caller's model was changed by moving the adapter to another type")


def a_state_belongs_to_its_model(make: Make, model: nn.Module, batches: list[torch.Tensor]) -> None:
    """The state of an adapter around another model is refused, and neither model nor adapter is changed by it."""
    other = _trained(model)
    adapter = make(model)
    adapter(batches[0])
    old = copy.deepcopy(adapter.state_dict())
    after = make(other)
    before, first = _picture(other), _state(after)
    try:
        after.load_state_dict(old)
    except HoldfastError:
        demand(_picture(other) == before, "a state that was refused changed the caller's model")
        demand(_state(after) == first, "a state that was refused changed the adapter")
        return
    demand(False, "the state of an adapter around another model was loaded")


def callers_model_can_be_trained(make: Make, model: nn.Module, batches: list[torch.Tensor]) -> None:
    """A step of training on the caller's model is the same with an adapter as without one; afterwards the adapter
    predicts what it would have, or says that the model was changed."""
    alone = copy.deepcopy(model)
    adapter, untouched = make(model), make(copy.deepcopy(model))
    adapter(batches[0])
    untouched(batches[0])
    for one in (model, alone):
        _train(one, batches[1])
    demand(_picture(model) == _picture(alone), "the caller's model trains otherwise than without the adapter")
    try:
        outputs = adapter(batches[1])
    except HoldfastError:
        return
    demand(_equal([outputs], [untouched(batches[1])]), "training the caller's model changed what the adapter predicts")


def reset_is_exact(make: Make, model: nn.Module, batches: list[torch.Tensor]) -> None:
    """After `reset`, state and predictions are those of a new adapter, bit for bit."""
    adapter = make(model)
    first = _state(adapter)
    outputs = _run(adapter, batches)
    adapter.reset()
    demand(_state(adapter) == first, "reset does not restore the state")
    demand(_equal(_run(adapter, batches), outputs), "after reset the same batches get other predictions")


def state_survives_a_round_trip(make: Make, model: nn.Module, batches: list[torch.Tensor]) -> None:
    """`state_dict`, loaded into a new adapter in the middle of a stream, goes on to the same numbers."""
    adapter = make(model)
    middle = len(batches) // 2
    _run(adapter, batches[:middle])
    saved = copy.deepcopy(adapter.state_dict())
    rest = _run(adapter, batches[middle:])
    other = make(model)
    other.load_state_dict(saved)
    demand(_equal(_run(other, batches[middle:]), rest), "a loaded state goes on to other predictions")


def copies_go_on_by_themselves(make: Make, model: nn.Module, batches: list[torch.Tensor]) -> None:
    """`copy.deepcopy`, and a file of the state, go on to the same predictions; a copy shares nothing that changes."""
    adapter = make(model)
    _run(adapter, batches[:1])
    copied, loaded = copy.deepcopy(adapter), make(model)
    with tempfile.TemporaryDirectory() as folder:
        adapter.save_state(Path(folder) / "state.safetensors")
        loaded.load_state(Path(folder) / "state.safetensors")
    rest = batches[1:3]
    expected = _run(adapter, rest)
    demand(_equal(_run(copied, rest), expected), "a copy goes on to other predictions")
    demand(_equal(_run(loaded, rest), expected), "a state read from a file goes on to other predictions")


def calls_from_threads_do_not_mix(make: Make, model: nn.Module, batches: list[torch.Tensor]) -> None:
    """Four threads get what they would have got one after the other in some order, and each the record of its own."""
    calls = [[batches[thread % len(batches)][:2] + 0.01 * (thread + turn) for turn in range(2)] for thread in range(4)]
    adapter, begin = make(model), threading.Barrier(len(calls))
    said: list[list[Any]] = [[] for _ in calls]

    def work(thread: int) -> None:
        begin.wait()
        for inputs in calls[thread]:
            said[thread].append((adapter(inputs).clone(), dict(adapter.record)))

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)  # so that threads that can meet do
    try:
        with ThreadPoolExecutor(len(calls)) as pool:
            for done in [pool.submit(work, thread) for thread in range(len(calls))]:
                done.result()
    finally:
        sys.setswitchinterval(interval)
    demand(
        _serial(make(model), calls, said, [0] * len(calls)), "no order of the calls gives what the threads were told"
    )


def learning_rate_zero_is_the_parent(make: Make, model: nn.Module, batches: list[torch.Tensor]) -> None:
    """With a learning rate of 0 it predicts what its parent, which does not learn, predicts.

    But for rounding: where a gradient is needed, torch takes other kernels.
    """
    if "lr" not in _settings(make):
        raise NotApplicable("there is no learning rate")
    adapter = make(model, lr=0.0)
    away = _distance(_run(adapter, batches), _run(adapter.parent(model), batches))
    demand(away < 1e-5, f"lr=0 differs from the parent by {away:.1e}")


def learning_rate_zero_is_the_parent_offline(make: Make, model: nn.Module, batches: list[torch.Tensor]) -> None:
    """The same where it learns from a whole stream before it predicts, whatever the size of the last batch."""
    if "lr" not in _settings(make):
        raise NotApplicable("there is no learning rate")
    adapter = make(model, lr=0.0)
    adapter.adapt([Batch(inputs, None, torch.arange(len(inputs)), {}) for inputs in (batches[0], batches[1][:2])])
    away = _distance(_run(adapter.predictor(), batches[:2]), _run(adapter.parent(model), batches[:2]))
    demand(away < 1e-5, f"after a whole stream, lr=0 differs from the parent by {away:.1e}")


def predicting_changes_nothing(make: Make, model: nn.Module, batches: list[torch.Tensor]) -> None:
    """A pass that only predicts changes nothing that a later step sees."""
    plain, looking = make(model), make(model)
    for adapter in (plain, looking):
        _run(adapter, batches[:1])
    looking.frozen = True
    _run(looking, [batches[1], batches[2][:2]])
    looking.frozen = False
    demand(_state(looking) == _state(plain), "predicting, while frozen, changes the state")
    demand(
        _equal(_run(looking, batches[3:]), _run(plain, batches[3:])), "predicting, while frozen, changes what follows"
    )


def infinite_prior_is_the_model(make: Make, model: nn.Module, batches: list[torch.Tensor]) -> None:
    """With an infinite prior its parent predicts what the model predicts, and so does it with a learning rate of 0."""
    if "prior" not in _settings(make):
        raise NotApplicable("there is no prior")
    still = {name: value for name, value in (("lr", 0.0), ("window", 0)) if name in _settings(make)}
    adapter = make(model, prior=float("inf"), **still)
    batches = batches[:2]
    if adapter.parent_label != "none":
        raise NotApplicable("its parent is more than the model")
    with torch.no_grad():
        plain = [model.eval()(inputs) for inputs in batches]
        alone = [model(inputs[:1]) for inputs in batches]
    others = {"the parent": adapter.parent(model)}
    if "lr" in still and _distance([outputs[:1] for outputs in plain], alone) < 1e-5:  # else it matters who is together
        others["it, at lr=0,"] = adapter
    for name, other in others.items():
        away = _distance(_run(other, batches), plain)
        demand(away < 1e-5, f"with an infinite prior {name} differs from the model by {away:.1e}")


def memory_layout_does_not_matter(make: Make, model: nn.Module, batches: list[torch.Tensor]) -> None:
    """In the memory layout that it chooses for a model, it predicts and learns what it does in contiguous memory."""
    chosen, contiguous = make(model), make(model)
    (contiguous.inner if isinstance(contiguous, Wrapper) else contiguous)._channels_last = False
    away = _distance(_run(chosen, batches[:2]), _run(contiguous, batches[:2]))
    demand(away < 1e-4, f"in the layout it chose it differs from contiguous memory by {away:.1e}")


def frozen_does_not_learn(make: Make, model: nn.Module, batches: list[torch.Tensor]) -> None:
    """With `frozen=True` the state stays and a batch gets the same predictions again."""
    adapter = make(model, frozen=True)
    before = _state(adapter)
    once, again = _run(adapter, batches[:1]), _run(adapter, batches[:1])
    demand(_state(adapter) == before, "frozen, and the state changed")
    demand(_equal(once, again), "frozen, and predictions changed")


def evaluation_mode_does_not_matter(make: Make, model: nn.Module, batches: list[torch.Tensor]) -> None:
    """`.eval()` and `.train()` on the adapter change nothing about what it does."""
    plain, evaluated = _run(make(model), batches[:2]), _run(make(model).eval(), batches[:2])
    demand(_equal(plain, evaluated), ".eval() changes the predictions")


def a_batch_of_one_works_or_says_why(make: Make, model: nn.Module, batches: list[torch.Tensor]) -> None:
    """One sample is predicted, or an error of holdfast's says why it cannot be."""
    try:
        outputs = make(model)(batches[0][:1])
    except HoldfastError:
        return
    demand(len(outputs) == 1 and bool(torch.isfinite(outputs).all()), "a batch of one gives no finite prediction")


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
    from holdfast.models import LeNet, ResNet, ViT

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
    """Every law on a class of adapters, on every kind of model to which it applies."""
    cases = []
    for model in example_models().values():
        try:
            make(model)
        except NotApplicable:
            continue
        cases.append((make, model, example_batches()))
    if not cases:
        return {"applies_to_some_model": "it refuses models with BatchNorm, GroupNorm, LayerNorm and without"}
    verdict = run_laws(ADAPTER_LAWS, cases)
    for law, (networks, channels) in FURTHER.items():
        more = [(make, model, example_batches(channels)) for model in networks().values()]
        verdict[law.__name__] = verdict[law.__name__] or run_laws([law], more)[law.__name__]
    return verdict


def _settings(make: Make) -> Collection[str]:
    kind: Any = make.func if isinstance(make, partial) else make
    return inspect.signature(kind).parameters


def _distance(one: list[torch.Tensor], two: list[torch.Tensor]) -> float:
    """The largest difference, relative to the largest value."""
    return max(float((a - b).abs().max() / (1 + b.abs().max())) for a, b in zip(one, two, strict=True))


def _run(adapter: Adapter, batches: list[torch.Tensor]) -> list[torch.Tensor]:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return [adapter(inputs).detach().clone() for inputs in batches]


def _equal(one: list[torch.Tensor], two: list[torch.Tensor]) -> bool:
    return all(map(torch.equal, one, two))


def _serial(adapter: Adapter, calls: list[list[torch.Tensor]], said: list[list[Any]], done: list[int]) -> bool:
    """Whether the calls that are not done yet, each thread's in its order, can be put into one order that says this."""
    if all(count == len(own) for count, own in zip(done, calls, strict=True)):
        return True
    state = adapter.state_dict()
    for thread, count in enumerate(done):
        if count == len(calls[thread]):
            continue
        outputs, record = said[thread][count]
        adapter.load_state_dict(state)
        if torch.equal(adapter(calls[thread][count]), outputs) and repr(adapter.record) == repr(record):
            after = [c + (other == thread) for other, c in enumerate(done)]
            if _serial(adapter, calls, said, after):
                return True
    return False


def _trained(model: nn.Module) -> nn.Module:
    """A copy that was trained a little."""
    other = copy.deepcopy(model)
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.mul_(1.001)
    return other


def _train(model: nn.Module, inputs: torch.Tensor) -> None:
    """A step of SGD in training mode."""
    model.train()
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    model(inputs).square().mean().backward()
    optimiser.step()
    optimiser.zero_grad()
    model.eval()


def _state(adapter: Adapter) -> dict[str, object]:
    return {key: _bytes(value) for key, value in adapter.state_dict().items()}


def _bytes(value: Any) -> object:
    """Something to compare exactly, tensors within containers included."""
    if isinstance(value, torch.Tensor):
        return value.detach().cpu().numpy().tobytes()
    if isinstance(value, dict):
        return {key: _bytes(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_bytes(inner) for inner in value]
    return repr(value)


def _picture(model: nn.Module) -> list[object]:
    tensors = [(key, value.detach().numpy().tobytes()) for key, value in model.state_dict().items()]
    flags = [(p.requires_grad, p.grad is None) for p in model.parameters()]
    modules = [(name, type(m), m.training, len(m._forward_hooks)) for name, m in model.named_modules()]
    return [tensors, flags, modules]
