"""Rules by which operations of a backward pass run on the rows of some samples only; `skip.py` says what for.

A rule gets the operation, its arguments and its keywords, and returns what it makes of the rows, or NotImplemented
where samples do not stay apart: then the operation gets whole tensors.
"""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import torch

from haptera.adapters.rows import Rows

aten = torch.ops.aten


def _alike(value: Any, like: Rows, slot: int = 0) -> Any:
    """The rows of an operand that is combined with a gradient entry by entry; NotImplemented where it does not fit."""
    if not isinstance(value, torch.Tensor):
        return value
    if isinstance(value, Rows):
        return value.part if value.place.matches(like.place) else NotImplemented
    dim = like.place.dim - (like.ndim - value.ndim)
    if dim < 0 or value.shape[dim] == 1:
        return value
    return like.place.at(dim).take(value, slot) if value.shape[dim] == like.shape[like.place.dim] else NotImplemented


def _entrywise(func: Any, args: Any, kwargs: Any) -> Any:
    """Zero stays zero, and samples are apart: products, and derivatives of activations."""
    like = next(value for value in args if isinstance(value, Rows))
    if any(isinstance(value, torch.Tensor) and value.ndim > like.ndim for value in args):
        return NotImplemented
    parts = [_alike(value, like, slot) for slot, value in enumerate(args)]
    if any(part is NotImplemented for part in parts):
        return NotImplemented
    out = func(*parts, **kwargs)
    shape = list(out.shape)
    shape[like.place.dim] = like.shape[like.place.dim]
    return Rows(out, like.place, shape)


def _product(func: Any, args: Any, kwargs: Any) -> Any:
    """A product of a gradient and something else; not a quotient with the gradient below."""
    if func in DIVISIONS and isinstance(args[1], Rows):
        return NotImplemented
    return _entrywise(func, args, kwargs)


def _sum_of_two(func: Any, args: Any, kwargs: Any) -> Any:
    if not all(isinstance(value, Rows) for value in args[:2]) or args[0].shape != args[1].shape:
        return NotImplemented
    joint = args[0].join(args[1]) if func is aten.add.Tensor and not kwargs else None
    return _entrywise(func, args, kwargs) if joint is None else joint


def _moved(func: Any, args: Any, kwargs: Any) -> Any:
    """Dimensions in another order."""
    rows = args[0]
    ndim = rows.ndim
    order = list(range(ndim))
    if func is aten.permute.default:
        order = [dim % ndim for dim in args[1]]
    elif func is aten.t.default:
        order = order[::-1]
    else:
        a, b = args[1] % ndim, args[2] % ndim
        order[a], order[b] = order[b], order[a]
    place = rows.place.at(order.index(rows.place.dim))
    return Rows(rows.part.permute(order), place, [rows.shape[dim] for dim in order])


def _reshaped(func: Any, args: Any, kwargs: Any) -> Any:
    rows, shape = args[0], list(args[1])
    if -1 in shape:
        shape[shape.index(-1)] = rows.numel() // -prod(shape)
    place = rows.place.viewed(rows.shape, shape)
    return NotImplemented if place is None else Rows(rows.part.reshape(place.sizes(shape)), place, shape)


def _squeezed(func: Any, args: Any, kwargs: Any) -> Any:
    rows = args[0]
    dims = range(rows.ndim) if len(args) == 1 else [args[1]] if isinstance(args[1], int) else args[1]
    gone = {dim % rows.ndim for dim in dims if rows.shape[dim] == 1}
    if rows.place.dim in gone:
        return NotImplemented
    left = [dim for dim in range(rows.ndim) if dim not in gone]
    place = rows.place.at(left.index(rows.place.dim))
    return Rows(rows.part.squeeze(tuple(gone)), place, [rows.shape[dim] for dim in left])


def _unsqueezed(func: Any, args: Any, kwargs: Any) -> Any:
    rows, new = args[0], args[1] % (args[0].ndim + 1)
    place = rows.place.at(rows.place.dim + (new <= rows.place.dim))
    return Rows(rows.part.unsqueeze(new), place, [*rows.shape[:new], 1, *rows.shape[new:]])


def _expanded(func: Any, args: Any, kwargs: Any) -> Any:
    rows, shape = args[0], list(args[1])
    more = len(shape) - rows.ndim
    shape = [rows.shape[dim - more] if size == -1 else size for dim, size in enumerate(shape)]
    place = rows.place.at(rows.place.dim + more)
    if shape[place.dim] != rows.shape[rows.place.dim]:
        return NotImplemented
    return Rows(rows.part.expand(place.sizes(shape)), place, shape)


def _copied(func: Any, args: Any, kwargs: Any) -> Any:
    rows = args[0]
    return Rows(func(rows.part, *args[1:], **kwargs), rows.place, rows.shape)


def _summed(func: Any, args: Any, kwargs: Any) -> Any:
    rows, dims = args[0], args[1] if len(args) > 1 else None
    keep = args[2] if len(args) > 2 else kwargs.get("keepdim", False)
    dims = range(rows.ndim) if not dims else [dim % rows.ndim for dim in dims]
    if rows.place.dim in dims:
        return func(rows.part, *args[1:], **kwargs)
    if keep:
        place, shape = rows.place, [1 if dim in dims else size for dim, size in enumerate(rows.shape)]
    else:
        left = [dim for dim in range(rows.ndim) if dim not in dims]
        place, shape = rows.place.at(left.index(rows.place.dim)), [rows.shape[dim] for dim in left]
    return Rows(func(rows.part, *args[1:], **kwargs), place, shape)


def _multiplied(func: Any, args: Any, kwargs: Any) -> Any:
    """Matrix products: over the samples the result is a plain tensor, else it has their rows."""
    one, two = args[:2]
    like = one if isinstance(one, Rows) else two
    place, first = like.place, like.ndim - 2
    shape = [*one.shape[:-1], two.shape[-1]]
    if place.dim < first:  # a product for each sample
        parts = [_alike(one, like), _alike(two, like, 1)] if one.shape[0] == two.shape[0] else [NotImplemented]
        return NotImplemented if any(part is NotImplemented for part in parts) else Rows(func(*parts), place, shape)
    if isinstance(one, Rows) and isinstance(two, Rows):
        return NotImplemented
    if place.dim == (first + 1 if like is one else first):  # the sum is over samples, and zeros add nothing
        other = place.at(first if like is one else first + 1).take(two if like is one else one)
        return func(one.part, other) if like is one else func(other, two.part)
    return Rows(func(one.part, two) if like is one else func(one, two.part), place, shape)


def _selected(func: Any, args: Any, kwargs: Any) -> Any:
    """What was one entry, or a stretch, of a dimension becomes that dimension again, with zeros elsewhere."""
    rows, sizes, dim = args[0], list(args[1]), args[2] % len(args[1])
    shift = func is aten.select_backward.default and dim <= rows.place.dim
    place = rows.place.at(rows.place.dim + int(shift))
    if place.dim == dim:
        return NotImplemented
    if func is aten.select_backward.default:
        return Rows.of_entries({args[3] % sizes[dim]: rows.part}, dim, place, sizes)
    return Rows(func(rows.part, place.sizes(sizes), dim, *args[3:]), place, sizes)


def _cut(func: Any, args: Any, kwargs: Any) -> Any:
    """One entry or a stretch of a dimension, as the parts of what was concatenated."""
    rows, dim = args[0], args[1] % args[0].ndim if len(args) > 1 else 0
    if dim == rows.place.dim:
        return NotImplemented
    out = func(rows.part, *args[1:], **kwargs)
    place = rows.place.at(rows.place.dim - int(func is aten.select.int and dim < rows.place.dim))
    shape = list(out.shape)
    shape[place.dim] = rows.shape[rows.place.dim]
    return Rows(out, place, shape)


def _stacked(func: Any, args: Any, kwargs: Any) -> Any:
    """Gradients of parts of one tensor, in a new dimension or one after the other."""
    every, dim = args[0], args[1] if len(args) > 1 else 0
    if not all(isinstance(rows, Rows) and rows.place.matches(every[0].place) for rows in every):
        return NotImplemented
    new = func is aten.stack.default
    dim = dim % (every[0].ndim + new)
    place = every[0].place.at(every[0].place.dim + int(new and dim <= every[0].place.dim))
    if dim == place.dim:
        return NotImplemented
    out = func([rows.part for rows in every], dim)
    shape = list(out.shape)
    shape[place.dim] = every[0].shape[every[0].place.dim]
    return Rows(out, place, shape)


def _by_first(*saved: int, count: int | None = None) -> Callable[..., Any]:
    """A backward function of layers whose samples are in the first dimension; `saved` are its tensors with samples.

    Args:
        saved: the places of such arguments.
        count: the place of an argument that is the number of samples.
    """

    def rule(func: Any, args: Any, kwargs: Any) -> Any:
        rows = args[0]
        place = rows.place
        if (place.dim, place.outer, place.inner) != (0, 1, 1):
            return NotImplemented
        parts = list(args)
        parts[0] = rows.part
        unused = func is aten.convolution_backward.default and not args[-1][1]  # only its shape is looked at
        for position in saved:
            value = args[position]
            if isinstance(value, Rows) or value is None:
                return NotImplemented
            parts[position] = value[: len(place.index)] if unused else place.take(value, position)
        if count is not None:
            parts[count] = len(place.index)
        return _wrapped(func(*parts, **kwargs), rows, args[saved[0]].shape)

    return rule


def _wrapped(outputs: Any, rows: Rows, shape: Sequence[int]) -> Any:
    """Gradients of what has samples as rows, those of weights as they are."""
    if isinstance(outputs, torch.Tensor):
        return Rows(outputs, rows.place, shape)
    first, *others = outputs
    return (None if first is None else Rows(first, rows.place, shape), *others)


def _batch_norm(func: Any, args: Any, kwargs: Any) -> Any:
    """Of BatchNorm with fixed statistics; those of the batch mix samples."""
    return NotImplemented if args[7] else _by_first(1)(func, args, kwargs)


def _layer_norm(func: Any, args: Any, kwargs: Any) -> Any:
    rows, inputs, shape, mean, rstd, *rest = args
    if not isinstance(rows, Rows) or rows.place.dim >= rows.ndim - len(shape):
        return NotImplemented
    parts = [rows.place.take(value, slot) for slot, value in enumerate((inputs, mean, rstd))]
    return _wrapped(func(rows.part, parts[0], shape, *parts[1:], *rest, **kwargs), rows, rows.shape)


def _attention(func: Any, args: Any, kwargs: Any) -> Any:
    """Of attention on CPUs: gradient, query, key, value, output and normaliser have samples first."""
    rows = args[0]
    place = rows.place
    if (place.dim, place.outer, place.inner) != (0, 1, 1) or kwargs.get("attn_mask") is not None:
        return NotImplemented
    parts = [place.take(value, slot) for slot, value in enumerate(args[1:6])]
    outputs = func(rows.part, *parts, *args[6:], **kwargs)
    return tuple(Rows(out, place, like.shape) for out, like in zip(outputs, args[1:4], strict=True))


def _softmax(func: Any, args: Any, kwargs: Any) -> Any:
    rows, output, dim, *rest = args
    if not isinstance(rows, Rows) or dim % rows.ndim == rows.place.dim:
        return NotImplemented
    return Rows(func(rows.part, rows.place.take(output), dim, *rest), rows.place, rows.shape)


DIVISIONS = (aten.div.Tensor, aten.div.Scalar)
_COPIES = (aten.clone.default, aten.detach.default, aten.alias.default, aten.neg.default, aten._to_copy.default)
_VIEWS = (aten.view.default, aten._unsafe_view.default, aten.reshape.default)
_ACTIVATIONS = (
    aten.threshold_backward.default,
    aten.gelu_backward.default,
    aten.silu_backward.default,
    aten.hardtanh_backward.default,
    aten.hardswish_backward.default,
    aten.hardsigmoid_backward.default,
    aten.sigmoid_backward.default,
    aten.tanh_backward.default,
)
RULES: dict[Any, Callable[..., Any]] = {
    **dict.fromkeys(_COPIES, _copied),
    **dict.fromkeys(_VIEWS, _reshaped),
    **dict.fromkeys(_ACTIVATIONS, _entrywise),
    **dict.fromkeys((aten.mul.Tensor, aten.mul.Scalar, *DIVISIONS), _product),
    **dict.fromkeys((aten.add.Tensor, aten.add_.Tensor, aten.sub.Tensor), _sum_of_two),
    **dict.fromkeys((aten.permute.default, aten.t.default, aten.transpose.int), _moved),
    **dict.fromkeys((aten.squeeze.default, aten.squeeze.dim, aten.squeeze.dims), _squeezed),
    **dict.fromkeys((aten.mm.default, aten.bmm.default), _multiplied),
    **dict.fromkeys((aten.select_backward.default, aten.slice_backward.default), _selected),
    **dict.fromkeys((aten.slice.Tensor, aten.select.int), _cut),
    **dict.fromkeys((aten.stack.default, aten.cat.default), _stacked),
    aten.unsqueeze.default: _unsqueezed,
    aten.expand.default: _expanded,
    aten.sum.dim_IntList: _summed,
    aten.native_batch_norm_backward.default: _batch_norm,
    aten.native_layer_norm_backward.default: _layer_norm,
    aten.native_group_norm_backward.default: _by_first(1, 2, 3, count=5),
    aten.convolution_backward.default: _by_first(1),
    aten.avg_pool2d_backward.default: _by_first(1),
    aten._adaptive_avg_pool2d_backward.default: _by_first(1),
    aten.max_pool2d_with_indices_backward.default: _by_first(1, 7),
    aten._scaled_dot_product_flash_attention_for_cpu_backward.default: _attention,
    aten._softmax_backward_data.default: _softmax,
}
"""The operations of backward passes that run on the rows; others run on the whole."""
Rows.rules.update(RULES)
