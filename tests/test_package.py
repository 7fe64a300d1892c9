"""The names that the package itself offers."""

import pytest

import holdfast


@pytest.mark.parametrize("name", holdfast.__all__)
def test_every_promised_name_is_there(name):
    assert getattr(holdfast, name)
