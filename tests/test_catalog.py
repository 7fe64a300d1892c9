"""The catalog: every name leads to an object, and plugins stand beside our own."""

import pytest

from haptera import catalog
from haptera.errors import HapteraError


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind in catalog.KINDS for name in catalog.entries(kind)])
def test_every_name_leads_to_a_documented_object(kind, name):
    thing = catalog.find(kind, name)
    assert thing.__doc__
    assert catalog.name_of(kind, thing) == name


def test_unknown_names_are_errors_with_the_nearest():
    with pytest.raises(HapteraError, match="unknown shift 'gausian_noise'; did you mean 'gaussian_noise'"):
        catalog.find("shifts", "gausian_noise")
    with pytest.raises(HapteraError, match="unknown kind 'shift'; did you mean 'shifts'"):
        catalog.entries("shift")


def test_an_entry_point_adds_a_name_but_cannot_replace_ours(tmp_path, monkeypatch):
    package = tmp_path / "plug-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: plug\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text("[haptera.adapters]\nmine = plug:Mine\nnone = plug:Mine\n")
    (tmp_path / "plug.py").write_text("class Mine:\n    'An adapter.'\n")
    monkeypatch.syspath_prepend(tmp_path)
    catalog.entries.cache_clear()
    try:
        assert catalog.find("adapters", "mine").__name__ == "Mine"
        assert catalog.entries("adapters")["mine"].summary == "from plug"
        assert catalog.find("adapters", "none").__name__ == "NoAdaptation"
    finally:
        catalog.entries.cache_clear()


def test_a_plugin_that_cannot_be_loaded_is_named():
    with pytest.raises(HapteraError, match="cannot load nowhere:Thing"):
        catalog.Entry("nowhere:Thing", "").load()
