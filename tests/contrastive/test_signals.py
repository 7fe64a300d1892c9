"""Points of a batch are the same, whichever way its windows go through the encoder."""

import numpy as np
import torch

from haptera.contrastive.encoder import ConvolutionalEncoder, encode_windows
from haptera.contrastive.signals import Embedder, Signal, Timeline
from haptera.recordings.windows import Offset


def test_points_of_joined_windows_are_those_of_each_window():
    random = np.random.default_rng(0)
    offset, values = Offset(5, 5), random.normal(size=(400, 3)).astype(np.float32)
    timeline = Timeline([400], offset)
    torch.manual_seed(0)
    encoder = ConvolutionalEncoder(3, 6, 2)
    places = np.concatenate([random.integers(5, 395, 60), [5, 5, 394, 395]])
    found = {}
    for rows in (4, 64, 10_000):  # windows far apart, most samples in some window, all of them
        embedder = Embedder([encoder], [Signal(values, offset, torch.device("cpu"))], timeline, rows)
        found[rows] = embedder(places)
        assert embedder._joined == [rows != 10_000]
    signal = Signal(values, offset, torch.device("cpu"))
    expected = encode_windows(encoder, signal.windows(places))
    for points in found.values():
        torch.testing.assert_close(points, expected, rtol=1e-4, atol=1e-5)
    (true,) = torch.autograd.grad(expected[:, 0].sum(), encoder.stem.weight)
    for points in found.values():
        (one,) = torch.autograd.grad(points[:, 0].sum(), encoder.stem.weight)
        torch.testing.assert_close(one, true, rtol=1e-3, atol=1e-4)
