"""Logits with a graph that is known: some classes are sums of three others, of another size each, and noise."""

import numpy as np


def planted(
    classes: int, samples: int, *, noise: float = 0.5, spread: float = 0.7, seed: int = 0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return logits, the classes that were planted, and `(classes, classes)`, from which each of them is made.

    The others come in families, so they are correlated too. The sizes of logits differ by a factor of e^spread.
    """
    generator = np.random.default_rng(seed)
    count = classes // 3
    free = classes - count
    families = generator.standard_normal((samples, 6))[:, generator.integers(0, 6, free)]
    logits = np.hstack([0.6 * families + 0.8 * generator.standard_normal((samples, free)), np.zeros((samples, count))])
    truth = np.zeros((classes, classes), bool)
    for target in range(free, classes):
        on = generator.choice(free, 3, replace=False)
        column = logits[:, on] @ (generator.uniform(0.5, 1, 3) * generator.choice([-1, 1], 3))
        logits[:, target] = column / column.std() + noise * generator.standard_normal(samples)
        truth[target, on] = True
    return logits * np.exp(generator.normal(0, spread, classes)), np.arange(free, classes), truth
