"""The names that the package itself offers."""

import pytest

import haptera


@pytest.mark.parametrize("name", haptera.__all__)
def test_every_promised_name_is_there(name):
    assert getattr(haptera, name)
