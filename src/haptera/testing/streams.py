"""The laws of streams."""

import inspect
from collections.abc import Callable

import numpy as np
import torch

from haptera.batch import Batch, Stream
from haptera.data import ArrayData, CorruptedImages, CorruptedPart, Data
from haptera.errors import HapteraError
from haptera.testing.law import demand, run_laws


def two_passes_are_equal(stream: Stream, data: Data) -> None:
    """Reading a stream twice gives the same batches."""
    for index, (one, two) in enumerate(zip(stream, stream, strict=True)):
        demand(_equal(one, two), f"batch {index} differs between two passes")


def any_position_can_be_read(stream: Stream, data: Data) -> None:
    """`stream[i]` is the i-th batch, whatever was read before; past the end is an IndexError."""
    batches = list(stream)
    for index in reversed(range(len(stream))):
        demand(_equal(stream[index], batches[index]), f"batch {index} read alone is another one")
    for index in (len(stream), -1):
        try:
            stream[index]
        except IndexError:
            continue
        demand(False, f"batch {index} of {len(stream)} is not an IndexError")


def targets_are_untouched(stream: Stream, data: Data) -> None:
    """Every sample keeps the target it has in the data; a stream that is not `labelled` gives none."""
    if not stream.labelled:
        demand(all(batch.targets is None for batch in stream), "it says that it gives no targets, but does")
        return
    by_row = dict(zip(data.rows.tolist(), data.targets.tolist(), strict=True)) if data.targets is not None else {}
    for batch in stream:
        rows = np.broadcast_to(batch.context.get("sample", batch.ids.numpy()), len(batch))
        expected = torch.tensor([by_row[row] for row in rows.tolist()])
        demand(batch.targets is not None and torch.equal(batch.targets, expected), "a target was changed")


def length_is_known_beforehand(stream: Stream, data: Data) -> None:
    """`len` and `samples` agree with what is read, and no batch is empty."""
    batches = list(stream)
    demand(len(batches) == len(stream), f"len says {len(stream)} batches, {len(batches)} came")
    came = sum(len(batch) for batch in batches)
    demand(came == stream.samples, f"samples says {stream.samples}, {came} came")
    demand(all(len(batch) for batch in batches), "a batch is empty")


def ids_are_unique(stream: Stream, data: Data) -> None:
    """No two samples of a part share an id, since they would share their randomness."""
    for part in stream.parts():
        ids = torch.cat([batch.ids for batch in part])
        demand(len(ids.unique()) == len(ids), "an id comes twice")


def parts_make_up_the_whole(stream: Stream, data: Data) -> None:
    """The parts, one after the other, are the stream."""
    pieces = [batch for part in stream.parts() for batch in part]
    demand(len(pieces) == len(stream), f"{len(pieces)} batches in the parts, {len(stream)} in the stream")
    demand(all(map(_equal, pieces, stream)), "the parts differ from the stream")


def fingerprint_follows_settings(stream: Stream, data: Data) -> None:
    """Another seed is another fingerprint, the same stream the same one."""
    demand(stream.fingerprint() == stream.fingerprint(), "the fingerprint changes by itself")
    demand(stream.with_seed(99).fingerprint() != stream.fingerprint(), "another seed has the same fingerprint")


STREAM_LAWS = (
    two_passes_are_equal,
    any_position_can_be_read,
    targets_are_untouched,
    length_is_known_beforehand,
    ids_are_unique,
    parts_make_up_the_whole,
    fingerprint_follows_settings,
)


def example_data(samples: int = 23) -> ArrayData:
    """A few small colour images of three classes."""
    generator = np.random.default_rng(0)
    images = generator.integers(0, 256, (samples, 8, 8, 3), dtype=np.uint8)
    return ArrayData(images, generator.integers(0, 3, samples), name="example")


def example_corrupted() -> CorruptedImages:
    """The same images as if they had been corrupted on disk."""
    parts = [CorruptedPart(shift, severity, example_data()) for shift in ("fog", "snow") for severity in (1.0, 5.0)]
    return CorruptedImages("example", parts)


def example_domains() -> CorruptedImages:
    """Images of two domains, with samples of their own, numbered through."""
    every = example_data(20)
    rows = np.array_split(np.arange(20), [13])
    images = (every.images(np.arange(20)) * 255).round().byte().permute(0, 2, 3, 1).numpy()
    assert every.targets is not None
    parts = [ArrayData(images[own], every.targets[own], name="example", ids=own) for own in rows]
    domains = zip(("photo", "sketch"), parts, strict=True)
    return CorruptedImages("example", [CorruptedPart(name, float("nan"), data) for name, data in domains], paired=False)


def check_stream(kind: Callable[..., Stream]) -> dict[str, str]:
    """Every law on a class of streams that is built from data alone, or from data in parts, or from either."""
    others = list(inspect.signature(kind).parameters.values())[1:]
    needed = [each.name for each in others if each.default is each.empty and each.kind is not each.VAR_KEYWORD]
    if needed:
        name = getattr(kind, "__name__", "this stream")
        raise HapteraError(f"{name} needs {needed[0]} beside data; check functools.partial({name}, {needed[0]}=...)")
    data = example_data()
    sources: list[tuple[Data | CorruptedImages, Data]] = [
        (data, data),
        (example_corrupted(), data),
        (example_domains(), example_data(20)),
    ]
    cases, refused = [], []
    for source, samples in sources:
        try:
            cases += [(kind(source, batch_size=7), samples)]
        except HapteraError as error:
            refused.append(error)
    if not cases:
        raise refused[0]
    return run_laws(STREAM_LAWS, cases)


def _equal(one: Batch, two: Batch) -> bool:
    same = torch.equal(one.inputs, two.inputs) and torch.equal(one.ids, two.ids)
    if one.targets is None or two.targets is None:
        same &= one.targets is two.targets
    else:
        same &= torch.equal(one.targets, two.targets)
    keys = one.context.keys() == two.context.keys()
    return same and keys and all(_same(one.context[key], two.context[key]) for key in one.context)


def _same(one: object, two: object) -> bool:
    """Return whether two values of a context are the same; a domain has no severity, which is NaN."""
    return np.array_equal(one, two, equal_nan=np.asarray(one).dtype.kind == "f")  # type: ignore[arg-type]
