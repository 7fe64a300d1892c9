"""No serious finding of axe-core on the page of a study, light or dark; and the check can fail."""

import importlib.util
from pathlib import Path

import pytest
from tests.report.browser import CHROMIUM
from tests.report.conftest import make_study, write_report

PATH = Path(__file__).parents[2] / "tools" / "accessibility.py"
BROKEN = '<html data-ready="yes"><body><img src="data:image/png;base64,AAAA"><button></button></body></html>'
pytestmark = [
    pytest.mark.browser,
    pytest.mark.long,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on the path: axe-core did not look at the page"),
]


@pytest.fixture(scope="module")
def accessibility():
    spec = importlib.util.spec_from_file_location("accessibility", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    axe = module.axe_script()
    if axe is None:
        pytest.skip("npm cannot get axe-core: it did not look at the page")
    module.axe_script = lambda: axe
    return module


def test_the_page_of_a_study_has_no_serious_finding(accessibility, tmp_path, capsys):
    write_report(make_study(("resnet-18", "vit-small")), tmp_path / "report.html", title="t", settings={})
    assert accessibility.main(tmp_path / "report.html") == 0, capsys.readouterr().out


def test_an_image_without_a_text_is_found(accessibility, tmp_path, capsys):
    (tmp_path / "page.html").write_text(BROKEN)
    assert accessibility.main(tmp_path / "page.html") == 1
    assert "critical: image-alt" in capsys.readouterr().out
