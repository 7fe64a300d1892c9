"""Neo's objects: spike trains, signals with times, epochs and segments; here by objects that look like them."""

from types import SimpleNamespace

import numpy as np
import pytest

from haptera.errors import HapteraError
from haptera.recordings import neo
from haptera.recordings.neo import from_neo
from haptera.recordings.reading import Source

STAMPS = np.arange(0, 10, 0.05)


class Quantity:
    """Numbers with a unit, as Neo has them."""

    def __init__(self, values, unit="s", **facts):
        self.magnitude, self.unit = np.asarray(values, float), unit
        vars(self).update(facts)

    def rescale(self, unit):
        return Quantity(self.magnitude * {"s": 1.0, "ms": 0.001}[self.unit])


def segment(start=0.0, **more):
    trains = [Quantity([50, 150, 160], "ms", name="a"), Quantity([4250], "ms", name="b")]
    wave = Quantity(np.sin(STAMPS)[:, None], name="place", times=Quantity(STAMPS + start))
    epochs = [Quantity([0], name="runs", times=Quantity([1.0, 6.0]), durations=Quantity([2.0, 1.0]))]
    facts = {"spiketrains": trains, "analogsignals": [wave], "epochs": epochs}
    return SimpleNamespace(**facts | {"t_start": Quantity(start), "t_stop": Quantity(start + 10)} | more)


def test_spike_trains_are_counted_and_signals_are_labels():
    recording = from_neo(SimpleNamespace(segments=[segment()]), ["place"], bin=0.1)
    assert recording.channel_names() == ["a", "b"]
    assert recording.signal()[:2].tolist() == [[1, 0], [2, 0]]
    assert recording.signal()[42].tolist() == [0, 1]
    assert recording.label("place").values[0] == pytest.approx(np.sin([0, 0.05]).mean())
    assert recording.trials is None


def test_epochs_are_trials_and_what_is_outside_is_left_out():
    recording = from_neo(segment(), bin=0.1, trials="runs")
    assert len(recording) == 30
    assert recording.trials.tolist() == [0] * 20 + [1] * 10
    assert recording.notes == ("70 of 100 samples left out: outside of trials",)
    assert len(np.unique(recording.blocks)) == 2


def test_samples_of_a_long_epoch_after_a_short_one_inside_it_are_kept():
    epochs = [Quantity([0], name="runs", times=Quantity([1.0, 2.0]), durations=Quantity([4.0, 1.0]))]
    recording = from_neo(segment(epochs=epochs), bin=0.1, trials="runs")
    assert recording.trials.tolist() == [0] * 10 + [1] * 10 + [0] * 20
    assert recording.notes[0].startswith("1 of 2 trials begins before another has ended")


def test_segments_that_overlap_follow_one_another():
    recording = from_neo([segment(), segment()], ["place"], bin=0.1)
    assert recording.signal().sum() == 8
    assert sorted(set(recording.trials.tolist())) == [0, 1]
    assert (np.diff(recording.times) > 0).all()


def test_a_signal_can_be_embedded_too():
    waves = segment(spiketrains=[]).analogsignals * 2
    waves = [Quantity(one.magnitude, name=f"channel {k}", times=one.times) for k, one in enumerate(waves)]
    recording = from_neo(segment(spiketrains=[], analogsignals=waves), signal="channel*")
    assert recording.signal().shape == (200, 2)


@pytest.mark.parametrize(
    ("data", "more", "message"),
    [
        ([], {}, "no segments"),
        (segment(), {"labels": ["plaec"]}, "did you mean 'place'"),
        (segment(), {"trials": "run"}, "did you mean 'runs'"),
        (segment(spiketrains=[], analogsignals=[]), {}, "name the signal"),
        (segment(spiketrains=[]), {"signal": "spikes"}, "no spike trains; it has place"),
        ([segment(), segment(spiketrains=[])], {}, r"\[2, 0\] spike trains"),
    ],
)
def test_a_mistake_is_said_in_words(data, more, message):
    with pytest.raises(HapteraError, match=message):
        from_neo(data, **more)


def test_a_file_of_another_kind_needs_neo_and_no_pickle_is_opened(tmp_path, monkeypatch):
    path = tmp_path / "rat.plx"
    path.write_bytes(b"x")
    monkeypatch.setattr("haptera.recordings.reading.find_spec", lambda name: None)
    with pytest.raises(HapteraError, match="pip install neo"):
        Source(path).read()
    monkeypatch.setattr("haptera.recordings.reading.find_spec", lambda name: True)

    class PickleIO:
        def read(self, lazy):
            raise AssertionError("a pickle was opened")

    reader = SimpleNamespace(get_io=lambda name: PickleIO())
    monkeypatch.setattr(neo, "import_extra", lambda *arguments: reader)
    with pytest.raises(HapteraError, match="is a pickle, which may run code"):
        Source(path).read()
    reader.get_io = lambda name: SimpleNamespace(read=lambda lazy: [SimpleNamespace(segments=[segment()])])
    assert Source(path, bin=0.1).read().signal().shape == (100, 2)
    reader.get_io = lambda name: 1 / 0
    with pytest.raises(HapteraError, match=r"Neo cannot read .*rat\.plx: ZeroDivisionError"):
        Source(path).read()


def test_units_are_told_by_their_names_where_segments_list_them_in_another_order():
    second = segment(20)
    second.spiketrains = [Quantity([25], name="b"), Quantity([21, 22, 23], name="a")]
    recording = from_neo([segment(), second], bin=0.1)
    assert recording.signal().sum(0).tolist() == [6, 2]
    second.spiketrains = [Quantity([25], name="c"), Quantity([21, 22, 23], name="a")]
    with pytest.raises(HapteraError, match="not all segments have the unit b"):
        from_neo([segment(), second], bin=0.1)


@pytest.mark.parametrize(("unit", "kind"), [("rad", "angle"), ("deg", "angle"), ("m", "continuous")])
def test_a_label_in_radians_or_degrees_is_an_angle(unit, kind):
    turn = {"rad": 2 * np.pi, "deg": 360.0, "m": 1.0}[unit]
    facts = {"name": "hd", "times": Quantity(STAMPS), "shape": (len(STAMPS), 1), "dimensionality": unit}
    hd = Quantity((STAMPS / 7 % 1 * turn)[:, None], **facts)
    label = from_neo(segment(analogsignals=[hd]), ["hd"], bin=0.05).label("hd")
    assert label.kind == kind
    if kind == "angle":
        assert label.values[:3] == pytest.approx(STAMPS[:3] / 7 * 2 * np.pi, abs=0.02)
