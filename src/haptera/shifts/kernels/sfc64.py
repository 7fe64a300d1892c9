"""SFC64, as NumPy has it, for kernels that draw their own words.

Source: Chris Doty-Humphrey's PractRand. A word needs the one before, so two samples are drawn side by side, which
a core does in the time of one. Cost: about 1 ns per word of 64 bits.
"""

import numpy as np

from haptera.shifts.kernels.compiled import compiled

_ELEVEN, _THREE, _LEFT, _RIGHT, _ONE = np.uint64(11), np.uint64(3), np.uint64(24), np.uint64(40), np.uint64(1)


@compiled
def fill(state: np.ndarray, words: np.ndarray) -> None:
    """Draw the next words of one state, `(4,)` uint64, which goes on."""
    a, b, c, count = state[0], state[1], state[2], state[3]
    for index in range(len(words)):
        word = a + b + count
        count += _ONE
        a = b ^ (b >> _ELEVEN)
        b = c + (c << _THREE)
        c = ((c << _LEFT) | (c >> _RIGHT)) + word
        words[index] = word
    state[0], state[1], state[2], state[3] = a, b, c, count


@compiled
def _fill_two(first: np.ndarray, second: np.ndarray, words: np.ndarray) -> None:
    """The same for two states at once; `words` are `(2, count)`."""
    a, b, c, count = first[0], first[1], first[2], first[3]
    d, e, f, other = second[0], second[1], second[2], second[3]
    these, those = words[0], words[1]
    for index in range(len(these)):
        word, letter = a + b + count, d + e + other
        count += _ONE
        other += _ONE
        a, d = b ^ (b >> _ELEVEN), e ^ (e >> _ELEVEN)
        b, e = c + (c << _THREE), f + (f << _THREE)
        c, f = ((c << _LEFT) | (c >> _RIGHT)) + word, ((f << _LEFT) | (f >> _RIGHT)) + letter
        these[index] = word
        those[index] = letter
    first[0], first[1], first[2], first[3] = a, b, c, count
    second[0], second[1], second[2], second[3] = d, e, f, other


@compiled
def draw(states: np.ndarray, sample: int, words: np.ndarray) -> np.ndarray:
    """Return the words of a sample, `(count,)`, where samples come one after the other; `words` are `(2, count)`."""
    if sample % 2:
        return words[1]
    if sample + 1 < len(states):
        _fill_two(states[sample], states[sample + 1], words)
    else:
        fill(states[sample], words[0])
    return words[0]


@compiled
def advance(states: np.ndarray, rounds: int) -> None:
    """Leave out some words of each of `(samples, 4)` states."""
    scratch = np.empty(rounds, np.uint64)
    for row in range(len(states)):
        fill(states[row], scratch)


@compiled
def fill_uniform(states: np.ndarray, out: np.ndarray) -> None:
    """`(samples, count)` uniform deviates in [0, 1), float32 with 24 random bits."""
    count = out.shape[1]
    words = np.empty((2, (count + 1) // 2), np.uint64)
    for sample in range(len(out)):
        halves, made = draw(states, sample, words).view(np.uint32), out[sample]
        for index in range(count):
            made[index] = np.float32(np.int32(halves[index] >> np.uint32(8))) * np.float32(2**-24)


@compiled
def fill_table(states: np.ndarray, out: np.ndarray, table: np.ndarray) -> None:
    """`(samples, count)` entries of a table of 65,536, each as likely."""
    count = out.shape[1]
    words = np.empty((2, (count + 3) // 4), np.uint64)
    for sample in range(len(out)):
        halves, made = draw(states, sample, words).view(np.uint16), out[sample]
        for index in range(count):
            made[index] = table[halves[index]]
