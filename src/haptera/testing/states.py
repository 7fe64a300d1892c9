"""The laws of adapters about the caller's model, states, copies and threads, and what to compare runs by."""

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
from torch.nn.parameter import is_lazy

from haptera.adapters import Adapter
from haptera.adapters.passes import run
from haptera.errors import HapteraError
from haptera.testing.law import demand

Make = Callable[..., Adapter]


def settings_of(make: Callable[..., Adapter]) -> Collection[str]:
    """The names of the settings that a class, or a partial of one, takes."""
    kind: Any = make.func if isinstance(make, partial) else make
    return inspect.signature(kind).parameters


def answers(adapter: Callable[[torch.Tensor], Any], batches: list[torch.Tensor]) -> list[torch.Tensor]:
    """Return what it says about each batch; one tensor after the other where that is several."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        outputs = [adapter(inputs) for inputs in batches]
    return [out.detach().clone() for said in outputs for out in (said if isinstance(said, tuple) else [said])]


def own_answer(model: nn.Module, inputs: torch.Tensor) -> Any:
    """Return what the model itself says."""
    with torch.no_grad():
        return run(model, inputs.detach())


def distance(one: list[torch.Tensor], two: list[torch.Tensor]) -> float:
    """The largest difference, relative to the largest values of the second."""
    return max(float((a - b).abs().max() / (1 + b.abs().max())) for a, b in zip(one, two, strict=True))


def equal(one: list[torch.Tensor], two: list[torch.Tensor]) -> bool:
    """Return whether they are equal bit for bit."""
    return all(map(torch.equal, one, two))


def in_some_order(adapter: Adapter, calls: list[list[torch.Tensor]], said: list[list[Any]], done: list[int]) -> bool:
    """Say whether the calls that are left, each thread's in its order, can be put into one order that says this."""
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
            if in_some_order(adapter, calls, said, after):
                return True
    return False


def retrained(model: nn.Module) -> nn.Module:
    """A copy that was trained a little."""
    other = copy.deepcopy(model)
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.mul_(1.001)
    return other


def train(model: nn.Module, inputs: torch.Tensor) -> None:
    """A step of SGD in training mode."""
    model.train()
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    model(inputs).square().mean().backward()
    optimiser.step()
    optimiser.zero_grad()
    model.eval()


def state_of(adapter: Adapter) -> dict[str, object]:
    """All of an adapter's state, to compare."""
    return {key: exact(value) for key, value in adapter.state_dict().items()}


def exact(value: Any) -> object:
    """Something to compare exactly, tensors within containers included."""
    if isinstance(value, torch.Tensor):
        plain = value.detach().int_repr() if value.is_quantized else value.detach()
        return plain.cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
    if isinstance(value, dict):
        return {key: exact(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [exact(inner) for inner in value]
    return repr(value)


def picture(model: nn.Module) -> list[object]:
    """All of a model that an adapter must leave alone."""
    values = [(key, exact(value)) for key, value in model.state_dict().items() if not is_lazy(value)]
    flags = [(p.requires_grad, p.grad is None) for p in model.parameters()]
    modules = [(name, type(m), m.training, len(m._forward_hooks)) for name, m in model.named_modules()]
    return [values, flags, modules]


def callers_model_is_unchanged(make: Make, model: nn.Module, batches: list[torch.Tensor]) -> None:
    """Neither calls, `reset`, a state that is loaded, `.to` nor `.half` change anything about the caller's model.

    That is weights, buffers, flags and hooks, and no gradient appears on it.
    """
    for training in (True, False):
        model.train(training)
        before = picture(model)
        adapter = make(model)
        first = copy.deepcopy(adapter.state_dict())
        for inputs in batches[:2]:
            adapter(inputs)
        demand(picture(model) == before, f"the caller's model was changed by calls (training={training})")
        adapter.load_state_dict(first)
        adapter.reset()
        demand(picture(model) == before, f"the caller's model was changed by loading or reset (training={training})")
    adapter.to(torch.float64)(batches[0].double())
    adapter.half().to("cpu").float()
    demand(picture(model) == before, "the caller's model was changed by moving the adapter to another type")


def a_state_belongs_to_its_model(make: Make, model: nn.Module, batches: list[torch.Tensor]) -> None:
    """The state of an adapter around another model is refused, and neither model nor adapter is changed by it."""
    other = retrained(model)
    adapter = make(model)
    adapter(batches[0])
    old = copy.deepcopy(adapter.state_dict())
    after = make(other)
    before, first = picture(other), state_of(after)
    try:
        after.load_state_dict(old)
    except HapteraError:
        demand(picture(other) == before, "a state that was refused changed the caller's model")
        demand(state_of(after) == first, "a state that was refused changed the adapter")
        return
    demand(False, "the state of an adapter around another model was loaded")


def callers_model_can_be_trained(make: Make, model: nn.Module, batches: list[torch.Tensor]) -> None:
    """The caller's model trains as without an adapter, which then predicts as before or says that the model changed."""
    alone = copy.deepcopy(model)
    adapter, untouched = make(model), make(copy.deepcopy(model))
    adapter(batches[0])
    untouched(batches[0])
    for one in (model, alone):
        train(one, batches[1])
    demand(picture(model) == picture(alone), "the caller's model does not train as it does without the adapter")
    try:
        outputs = adapter(batches[1])
    except HapteraError:
        return
    demand(equal([outputs], [untouched(batches[1])]), "training the caller's model changed what the adapter predicts")


def reset_is_exact(make: Make, model: nn.Module, batches: list[torch.Tensor]) -> None:
    """After `reset`, state and predictions are those of a new adapter, bit for bit."""
    adapter = make(model)
    first = state_of(adapter)
    outputs = answers(adapter, batches)
    adapter.reset()
    demand(state_of(adapter) == first, "reset does not restore the state")
    demand(equal(answers(adapter, batches), outputs), "after reset the same batches get other predictions")


def state_survives_a_round_trip(make: Make, model: nn.Module, batches: list[torch.Tensor]) -> None:
    """`state_dict`, loaded into a new adapter in the middle of a stream, goes on to the same numbers."""
    adapter = make(model)
    middle = len(batches) // 2
    answers(adapter, batches[:middle])
    saved = copy.deepcopy(adapter.state_dict())
    rest = answers(adapter, batches[middle:])
    other = make(model)
    other.load_state_dict(saved)
    demand(equal(answers(other, batches[middle:]), rest), "a loaded state goes on to other predictions")


def copies_go_on_by_themselves(make: Make, model: nn.Module, batches: list[torch.Tensor]) -> None:
    """`copy.deepcopy`, and a file of the state, go on to the same predictions; a copy shares nothing that changes."""
    adapter = make(model)
    answers(adapter, batches[:1])
    copied, loaded = copy.deepcopy(adapter), make(model)
    with tempfile.TemporaryDirectory() as folder:
        adapter.save_state(Path(folder) / "state.safetensors")
        loaded.load_state(Path(folder) / "state.safetensors")
    rest = batches[1:3]
    expected = answers(adapter, rest)
    demand(equal(answers(copied, rest), expected), "a copy goes on to other predictions")
    demand(equal(answers(loaded, rest), expected), "a state read from a file goes on to other predictions")


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
        in_some_order(make(model), calls, said, [0] * len(calls)),
        "no order of the calls gives what the threads were told",
    )
