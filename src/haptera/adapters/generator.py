"""Random numbers of an adapter: one generator that starts from its seed, and whose place is part of its state.

A method draws from `self.random`, as in `torch.rand(n, generator=self.random)`. Numbers are drawn on the CPU, so that
they are the same on every device; `reset` begins them anew, a state that was saved goes on to the same ones, and a pass
that only predicts leaves them where they were.
"""

from typing import Any

import numpy as np
import torch

from haptera.errors import HapteraError


def generator_of(*key: int) -> torch.Generator:
    """A generator that starts from these numbers alone, such as a seed and a step."""
    # torch's generator starts from 32 bits only; numpy mixes all bits of the key into them
    return torch.Generator().manual_seed(int(np.random.SeedSequence(key).generate_state(1)[0]))


def generator_at(place: Any) -> torch.Generator | None:
    """Return a generator at the place that `Generator.get_state` gave; None for one that was not used yet."""
    if place is None:
        return None
    generator = torch.Generator()
    try:
        generator.set_state(place)
    except (RuntimeError, TypeError) as error:
        raise HapteraError(f"'random' of the state is not the place of a generator: {error}") from error
    return generator
