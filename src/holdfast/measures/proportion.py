"""Wilson's interval for a proportion: never outside [0, 1], sensible at 0, at 1 and for small n.

Source: E. B. Wilson, 1927. It is the interval of every accuracy and error here, at 95 %.
"""

from math import sqrt

Z95 = 1.959963984540054


def wilson(successes: float, n: int, z: float = Z95) -> tuple[float, float]:
    """Low and high end.

    >>> [round(end, 4) for end in wilson(8, 10)]
    [0.4902, 0.9433]
    """
    if n == 0:
        return 0.0, 1.0
    share = successes / n
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z * sqrt(share * (1 - share) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    return max(0.0, min(middle - half, share)), min(1.0, max(middle + half, share))
