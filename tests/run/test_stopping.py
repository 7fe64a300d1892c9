"""The first signal interrupts, later ones wait, and what becomes of the interruption on its way up is not shown."""

import signal

import pytest

from haptera.run.stopping import STOPS, ending_quietly, say_stopped


@pytest.mark.parametrize("number", STOPS)
def test_every_signal_ends_with_130_and_one_line(number, capsys):
    with pytest.raises(SystemExit) as end, ending_quietly():
        signal.raise_signal(number)
    assert end.value.code == 130
    assert capsys.readouterr().err == "error: stopped\n"


def stopped_twice():
    try:
        signal.raise_signal(signal.SIGTERM)
    except KeyboardInterrupt:
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGINT)
        say_stopped(" after 3 of 8 cells")
        raise


def test_a_second_signal_does_not_break_what_ends_the_first(capsys):
    with pytest.raises(SystemExit), ending_quietly():
        stopped_twice()
    assert capsys.readouterr().err == "error: stopped after 3 of 8 cells\n"


def broken_import():
    try:
        signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt as error:
        raise ImportError("numpy failed to import") from error


def test_an_import_that_was_interrupted_is_not_taken_for_a_broken_one():
    with pytest.raises(SystemExit) as end, ending_quietly():
        broken_import()
    assert end.value.code == 130


def test_other_errors_pass_and_handlers_are_put_back():
    before = [signal.getsignal(number) for number in STOPS]
    with pytest.raises(ZeroDivisionError), ending_quietly():
        raise ZeroDivisionError
    assert [signal.getsignal(number) for number in STOPS] == before


def test_what_is_ignored_stays_ignored():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does
    try:
        with ending_quietly():
            signal.raise_signal(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)
