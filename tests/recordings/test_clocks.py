"""Times in milliseconds where seconds are expected do not go unnoticed, whichever side they are on."""

import numpy as np
import pytest

from haptera.recordings.reading import Source
from haptera.recordings.spikes import from_spikes

STAMPS = np.arange(600) / 10
PLACE = np.sin(STAMPS)


def units(scale=1.0):
    random = np.random.default_rng(0)
    return [np.sort(random.uniform(0, 60, count)) * scale for count in (60, 300)]


@pytest.mark.parametrize(("spikes", "labels"), [(1000, 1000), (1000, 1), (1, 1000)])
def test_units_that_hardly_fire_are_asked_for_the_unit_of_times(spikes, labels):
    found = from_spikes(units(spikes), bin=0.1, labels={"place": (STAMPS * labels, PLACE)})
    assert [note for note in found.notes if "units fire" in note and "in seconds" in note]


def test_seconds_have_no_note_and_no_warning(caplog):
    assert from_spikes(units(), bin=0.1, labels={"place": (STAMPS, PLACE)}).notes == ()
    assert not caplog.records


def test_a_note_on_times_is_a_warning_as_soon_as_the_recording_is_read(caplog):
    found = from_spikes(units(1000), bin=0.1, source="mouse")
    assert caplog.messages == [f"mouse: {note}" for note in found.notes]
    assert "units fire 0.003 times a second" in caplog.text


@pytest.mark.parametrize(("scale", "doubted"), [(1, False), (1000, True)])
def test_tracking_in_milliseconds_is_noted(scale, doubted, tmp_path):
    spikes = np.concatenate(units())
    order = ["0"] * 60 + ["1"] * 300
    rows = [f"{time},{unit}" for time, unit in zip(spikes, order, strict=True)]
    (tmp_path / "spikes.csv").write_text("\n".join(["spike_times,unit", *rows]))
    rows = [f"{time * scale},{place}" for time, place in zip(STAMPS, PLACE, strict=True)]
    (tmp_path / "tracking.csv").write_text("\n".join(["time,place", *rows]))
    found = Source(tmp_path / "spikes.csv", labels=["place"], behaviour=tmp_path / "tracking.csv", bin=0.1).read()
    assert any("place has a value every 100 s" in note for note in found.notes) is doubted
