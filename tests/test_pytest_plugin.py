"""The plugin of pytest, in runs of its own; those of people who do not use it are not disturbed."""

import subprocess
import sys

import numpy as np
import pytest

import haptera.analyses.gate.opening  # runs in this process import it again if it is not there yet
import haptera.run.report  # noqa: F401
from recorded_studies import answers, change, plant, record

pytest_plugins = ["pytester"]
PLUGIN = "haptera.pytest_plugin"


@pytest.fixture
def run(pytester, monkeypatch):
    """Runs pytest on a text, in this process."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # it may be installed or not
    generator = np.random.default_rng(0)
    before = answers(generator, shifts=("contrast",), severities=(1, 4))
    record(pytester.path / "released", before)
    record(pytester.path / "same", change(generator, before, 0.02))
    record(pytester.path / "worse", plant(generator, before, [("contrast", 4)], 0.2))

    def run(text, *options):
        pytester.makepyfile(text)
        plain = ["-p", PLUGIN, "-p", "no:cacheprovider", "--strict-markers"]
        return pytester.runpytest_inprocess(*plain, *options)

    return run


TEST = "def test_robust(haptera_study):\n    pass\n"


def test_a_test_that_takes_the_fixture_fails_when_the_candidate_fell(run):
    result = run(TEST, "--haptera-study", "worse", "--haptera-baseline", "released")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["FAIL*contrast 4: accuracy .*after correction for 2 comparisons*"])


def test_it_passes_when_the_candidate_is_as_good(run):
    run(TEST, "--haptera-study", "same", "--haptera-baseline", "released").assert_outcomes(passed=1)


def test_without_a_study_it_is_skipped(run):
    result = run(TEST, "-rs")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["*there is no study to look at: give --haptera-study*"])


@pytest.mark.long
def test_the_mark_has_settings_and_goes_before_options(run):
    text = """
        import pytest

        @pytest.mark.haptera(study="worse", baseline="released", tolerance=0.5)
        def test_lenient(haptera_study):
            assert haptera_study.gate.passed

        @pytest.mark.haptera(study="worse", baseline="released", check=False)
        def test_own_verdict(haptera_study):
            assert len(haptera_study.gate.fallen) == 1

        @pytest.mark.haptera(study="worse", bar="accuracy@contrast:4=0.99")
        def test_bar(haptera_study):
            pass
    """
    result = run(text, "--haptera-study", "same")
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["*contrast 4: accuracy .*, bar accuracy@contrast:4=0.99*"])


def test_values_of_the_study_are_at_hand(run):
    text = """
        def test_values(haptera_study):
            assert 0 < haptera_study.accuracy("contrast", 4) < haptera_study.accuracy("contrast", 1) < 1
            assert haptera_study.value("error", "contrast", 1) == 1 - haptera_study.accuracy("contrast", 1)
    """
    run(text, "--haptera-study", "same").assert_outcomes(passed=1)


def test_a_failed_assertion_of_the_test_comes_before_the_gate(run):
    text = "def test_robust(haptera_study):\n    assert 1 == 2, 'mine'\n"
    result = run(text, "--haptera-study", "worse", "--haptera-baseline", "released")
    result.stdout.fnmatch_lines(["*AssertionError: mine*"])


def test_bad_input_fails_with_one_sentence(run):
    text = """
        import pytest

        @pytest.mark.parametrize("settings", [{"study": "nowhere"}, {"tolerance": 2}, {"tolerance": "x"}, {"bars": 1}])
        def test_robust(settings, request):
            request.node.add_marker(pytest.mark.haptera(**settings))
            request.getfixturevalue("haptera_study").check()
    """
    result = run(text, "--haptera-study", "same", "--haptera-baseline", "released")
    result.assert_outcomes(failed=4)
    messages = [
        "there is no folder *nowhere*",
        "tolerance is 2;*",
        "tolerance is 'x'; a number*",
        "*did you mean 'bar'*",
    ]
    result.stdout.fnmatch_lines(messages)
    result.stdout.no_fnmatch_line("*Traceback*")


def test_who_does_not_use_it_imports_nothing_of_it(pytester):
    heavy = {"torch", "numpy", "pandas", "haptera.analysis"}
    pytester.makepyfile(f"import sys\n\ndef test_light():\n    assert not {heavy} & set(sys.modules)\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", PLUGIN, "-W", "error"]
    environment = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PATH": ""}
    done = subprocess.run(command, cwd=pytester.path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
