"""Wrapped streams in study files and on the command line."""

import numpy as np
import pytest

from haptera.errors import HapteraError
from haptera.run.parts import from_flags
from haptera.run.settings import make_study, read_study
from haptera.shifts import Contrast
from haptera.streams import (
    Clean,
    Interleaved,
    OneByOne,
    Repeated,
    Truncated,
)


def study(folder, text):
    (folder / "study.toml").write_text('data = "data.npz"\nmodels = ["net.py:build"]\nbatch_size = 8\n' + text)
    return make_study(read_study(folder / "study.toml"), folder / "out", folder)


def test_a_study_file_wraps_any_stream(folder):
    [stream] = study(
        folder,
        '[[streams]]\nuse = "continual"\nshifts = ["contrast"]\n'
        "one_by_one = true\ntruncate = 30\nrepeat = 2\ninterleave = 3\n",
    ).streams
    kinds = []
    while hasattr(stream, "stream"):
        kinds.append(type(stream))
        stream = stream.stream
    assert kinds == [OneByOne, Truncated, Repeated, Interleaved]
    [named] = study(folder, '[[streams]]\nuse = "clean"\nname = "short"\ntruncate = 9\nrepeat = 1').streams
    assert (named.name, named.samples) == ("short", 9)
    [plain] = study(folder, '[[streams]]\nuse = "clean"\none_by_one = false').streams
    assert type(plain) is Clean


def test_flags_wrap_too(folder):
    flags = from_flags([f"{folder}/net.py:build"], [], ["correlated:by=contrast:3,labels=sorted,truncate=10"], [])
    [stream] = make_study(flags | {"data": str(folder / "data.npz")}, folder / "out").streams
    assert (stream.first, stream.stream.by) == (10, Contrast(3))


@pytest.mark.long
def test_a_study_of_the_new_streams_runs_and_has_their_columns(folder):
    ran = study(
        folder,
        'streams = ["clean", {use = "continual_orders", shifts = ["contrast", "gaussian_noise"]}, '
        '{use = "mixed", shifts = ["contrast"], severities = 3}, {use = "correlated", by = "contrast"}, '
        '{use = "gradual", shifts = ["contrast"], samples_per_step = 4, interleave = 2, one_by_one = true}]',
    )
    table = ran.run(progress=False)
    rows = table[table["measure"] == "accuracy"]
    assert set(rows["order"].dropna()) == {1, 2}
    assert set(rows["interleaved"].dropna().astype(bool)) == {True, False}
    assert rows[rows["stream"].str.startswith("gradual")]["n"].sum() == 9 * 4 + 4 * 8
    assert ran.last.failed == 0
    assert ran.report().is_file()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('use = "clean"\nrepaet = 2', "unknown setting of stream clean 'repaet'; did you mean 'repeat'"),
        ('use = "clean"\ntruncate = 0', "truncate of the stream 'clean' is 0; a whole number of at least 1"),
        ('use = "clean"\none_by_one = 1', "one_by_one of the stream 'clean' is 1; true or false"),
        ('use = "correlated"\nby = "contrast:x"', "severity of shift contrast is 'x'; a number was expected"),
        ('use = "correlated"\nby = "contast:5"', "unknown shift 'contast'; did you mean 'contrast'"),
        ('use = "gradual"\nsamples_per_stp = 5', "did you mean 'samples_per_step'"),
        ('use = "mixed"\nseverities = [7]', "is 7; a number from 0 to 5 was expected"),
    ],
)
def test_mistakes_in_a_study_file_are_named(folder, text, message):
    with pytest.raises(HapteraError, match=message):
        study(folder, f"[[streams]]\n{text}")


def test_between_batches_of_corrupted_data_come_clean_ones_of_the_study(folder):
    root = folder / "images"
    root.mkdir()
    np.save(root / "labels.npy", np.tile(np.arange(4) % 3, 5))
    np.save(root / "fog.npy", np.zeros((20, 8, 8, 3), np.uint8))
    [stream] = study(folder, '[[streams]]\nuse = "directory"\ndata = "images"\ninterleave = 1').streams
    assert [batch.context["shift"] for batch in stream.parts()[0]] == ["fog", "clean"]
    (folder / "study.toml").write_text(
        'data = "images"\nmodels = ["net.py:build"]\n[[streams]]\nuse = "directory"\ninterleave = 2'
    )
    with pytest.raises(HapteraError, match="interleave of the stream 'directory' needs clean data"):
        make_study(read_study(folder / "study.toml"), folder / "out", folder)
