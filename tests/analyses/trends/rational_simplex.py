"""A slow, obvious linear programme: the simplex method in fractions, with Bland's rule, so that nothing is rounded."""

from fractions import Fraction


def maximum(objective, most, equal):
    """The maximum of c·x with x >= 0, a·x <= b for each (a, b) of `most`, and a·x = b for each (a, b) of `equal`."""
    size = len(objective)
    slack = len(most)
    rows = []
    for place, (row, bound) in enumerate(most):
        own = [Fraction(1) if place == each else Fraction(0) for each in range(slack)]
        rows.append([*map(Fraction, row), *own, Fraction(bound)])
    rows += [[*map(Fraction, row), *[Fraction(0)] * slack, Fraction(bound)] for row, bound in equal]
    rows = [[-each for each in row] if row[-1] < 0 else row for row in rows]
    extra = len(rows)
    tableau = [
        row[:-1] + [Fraction(int(place == each)) for each in range(extra)] + row[-1:] for place, row in enumerate(rows)
    ]
    basis = [size + slack + place for place in range(extra)]
    first = [Fraction(0)] * (size + slack) + [Fraction(-1)] * extra
    assert _run(tableau, basis, first, size + slack + extra) == 0, "there is no point that keeps all limits"
    for place in reversed(range(len(tableau))):  # what is only there to begin with must not come back
        if basis[place] >= size + slack:
            column = next((each for each in range(size + slack) if tableau[place][each]), None)
            if column is None:
                del tableau[place], basis[place]
            else:
                _pivot(tableau, basis, place, column)
    second = [*map(Fraction, objective), *[Fraction(0)] * (slack + extra)]
    return _run(tableau, basis, second, size + slack)


def _run(tableau, basis, objective, columns):
    while True:
        value = sum(objective[own] * row[-1] for own, row in zip(basis, tableau, strict=True))
        gains = (
            (
                column,
                objective[column]
                - sum(objective[own] * row[column] for own, row in zip(basis, tableau, strict=True) if row[column]),
            )
            for column in range(columns)
            if column not in basis
        )
        entering = next((column for column, gain in gains if gain > 0), None)
        if entering is None:
            return value
        steps = [
            (row[-1] / row[entering], basis[place], place) for place, row in enumerate(tableau) if row[entering] > 0
        ]
        _, _, leaving = min(steps)
        _pivot(tableau, basis, leaving, entering)


def _pivot(tableau, basis, leaving, entering):
    pivot = tableau[leaving][entering]
    tableau[leaving] = [each / pivot for each in tableau[leaving]]
    for place, row in enumerate(tableau):
        if place != leaving and row[entering]:
            factor = row[entering]
            tableau[place] = [a - factor * b for a, b in zip(row, tableau[leaving], strict=True)]
    basis[leaving] = entering
