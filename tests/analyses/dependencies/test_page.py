"""The page of dependencies: the frames behind its figures, its layout of nodes, and the page in a browser."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from haptera import dependencies
from haptera.analyses.dependencies.analysis import ClassDependencies
from haptera.analyses.dependencies.page import (
    classes_section,
    covariance_section,
    graph_section,
    path_section,
    spectrum_section,
)
from haptera.report.figure import lay_out
from haptera.report.page import write_page

HOSTILE = "</script><img src=x onerror='window.harmed = 1'>"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def saved(folder: Path, count: int = 50, samples: int = 400) -> Path:
    generator = np.random.default_rng(0)
    targets = generator.integers(0, count, samples)
    logits = generator.standard_normal((samples, 12)) @ generator.standard_normal((12, count))
    logits += generator.standard_normal((samples, count)) + 4 * np.eye(count)[targets]
    names = [HOSTILE, *(f"class {place}" for place in range(1, count))]
    np.savez(folder / "net.npz", logits=logits, targets=targets, classes=names)
    return folder / "net.npz"


@pytest.fixture(scope="module")
def analysis(tmp_path_factory: pytest.TempPathFactory) -> ClassDependencies:
    return dependencies(saved(tmp_path_factory.mktemp("net")))


@pytest.fixture(scope="module")
def page(analysis: ClassDependencies, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "page.html"
    write_page(analysis.page(), path)
    return path


def test_edges_are_the_dependencies_of_the_best_class_first(analysis: ClassDependencies) -> None:
    frame = analysis.edges
    assert len(frame) == analysis.dependencies.coefficients.nnz
    best = int(analysis.dependencies.relative_error.argmin())
    own = frame[frame["class"] == analysis.names[best]]
    assert own.index.tolist() == list(range(len(own)))
    assert list(zip(own["on"], own["coefficient"], strict=True)) == [
        (analysis.names[on], value) for on, value in analysis.dependencies.on(best)
    ]
    matrix = analysis.lasso.moment_.matrix()
    assert own["covariance"].iloc[0] == matrix[best, analysis.names.index(own["on"].iloc[0])]


def test_every_class_has_one_place_whichever_end_of_an_edge_it_is(analysis: ClassDependencies) -> None:
    graph = graph_section(analysis).figures[1]
    frame = graph.frame
    assert graph.caption.endswith("Choose classes to see theirs alone.")
    places: dict[str, set[tuple[float, float]]] = {}
    for row in frame.itertuples():
        places.setdefault(row[1], set()).add((row.x, row.y))
        if isinstance(row.on, str):
            places.setdefault(row.on, set()).add((row.on_x, row.on_y))
    assert set(places) == set(analysis.names)
    assert {len(found) for found in places.values()} == {1}
    assert frame.groupby("class").size().max() <= 3


def test_a_layout_puts_joined_nodes_nearer_than_others_and_is_repeatable() -> None:
    ends = np.array([(a, b) for group in (0, 5, 10) for a in range(group, group + 5) for b in range(group, a)])
    one, two = (lay_out(range(16), [(a, b, 1.0) for a, b in ends]).to_numpy() for _ in range(2))
    assert np.array_equal(one, two)
    assert np.abs(one).max() <= 1
    assert np.isfinite(one).all()
    apart = np.linalg.norm(one[:, None] - one[None], axis=2)
    group = np.array([*np.repeat([0, 1, 2], 5), 3])
    same = (group[:, None] == group) & ~np.eye(16, dtype=bool)
    assert apart[same].mean() < 0.5 * apart[group[:, None] != group].mean()
    assert lay_out(range(1), []).to_numpy().tolist() == [[0, 0]]


def test_coefficient_against_covariance_has_every_pair_and_the_line(analysis: ClassDependencies) -> None:
    frame = covariance_section(analysis).figures[0].frame
    target = analysis.ranking[0]
    own = frame[frame["class"] == analysis.names[target]]
    points, line = own[own["mark"] == "point"], own[own["mark"] == "line"]
    assert len(points) == 49
    assert analysis.names[target] not in set(points["on"])
    assert (points["layer"] == "dependency").sum() == analysis.dependencies.counts[target]
    assert ((points["coefficient"] != 0) == (points["layer"] == "dependency")).all()
    assert line["covariance"].tolist() == [0.05, 0.05]


def test_paths_begin_at_zero_and_pass_the_solution(analysis: ClassDependencies) -> None:
    frame = path_section(analysis).figures[0].frame
    for (name, on), rows in frame.groupby(["class", "on"]):
        largest = rows.sort_values("alpha", ascending=False).iloc[0]
        assert largest["coefficient"] == 0 or largest["alpha"] == frame["alpha"].max(), (name, on)
    first = frame[frame["class"] == analysis.names[analysis.ranking[0]]]
    assert first["alpha"].min() < 0.05 < first["alpha"].max()
    assert first.sort_values("alpha")["relative_error"].is_monotonic_increasing


def test_spectrum_and_table_have_every_class(analysis: ClassDependencies) -> None:
    (figure,) = spectrum_section(analysis).figures
    matrix = analysis.moment.matrix()
    assert figure.frame["value"].to_numpy() == pytest.approx(np.linalg.eigvalsh(matrix)[::-1])
    table = classes_section(analysis).tables[0].frame
    assert len(table) == 50
    assert table["relative_error"].is_monotonic_increasing
    on_all = analysis.lasso.dependencies_.on_moment(analysis.moment)
    assert (analysis.redundancy.value <= on_all.error + 1e-9).all()
    assert {"mean_error", "accuracy", "positive_accuracy"} <= set(table)


def test_where_there_are_no_dependencies_the_page_says_so(tmp_path: Path) -> None:
    nothing = dependencies(saved(tmp_path), alpha=1e6)
    assert nothing.edges.empty
    write_page(nothing.page(), tmp_path / "page.html")
    assert "No class depends on any other at this α" in (tmp_path / "page.html").read_text("utf-8")


def test_the_same_analysis_gives_the_same_bytes(analysis: ClassDependencies, page: Path, tmp_path: Path) -> None:
    write_page(analysis.page(), tmp_path / "again.html")
    assert (tmp_path / "again.html").read_bytes() == page.read_bytes()


@pytest.mark.long  # CI runs it, too: `make test-long`
@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on the path: the page was not opened in a browser")
def test_the_page_in_a_browser_draws_searches_and_harms_nobody(page: Path, analysis: ClassDependencies) -> None:
    from playwright.sync_api import expect, sync_playwright

    with sync_playwright() as playwright:
        arguments = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        opened = browser.new_page(viewport={"width": 1280, "height": 900})
        opened.set_default_timeout(120_000)
        expect.set_options(timeout=120_000)
        errors: list[str] = []
        opened.on("console", lambda message: errors.append(message.text))
        opened.on("pageerror", lambda error: errors.append(str(error)))
        opened.goto(page.as_uri())
        opened.wait_for_selector("html[data-ready=yes]")

        star = opened.locator("#figure-2-1")
        star.scroll_into_view_if_needed()  # figures are drawn when they are looked at
        search = star.locator("input[type=search]")
        expect(search).to_have_value(analysis.names[analysis.ranking[0]])
        search.fill("lass 17")  # a part of the name is enough
        search.press("Enter")
        search.blur()
        expect(search).to_have_value("class 17")
        expect(star.locator(".annotation")).to_contain_text("class 17")
        count = len(analysis.first_few.on(17))
        expect(star.locator(".scatterlayer .point")).to_have_count(min(count, 16))
        expect(star.locator(".scatterlayer .textpoint").first).to_contain_text(
            analysis.names[analysis.first_few.on(17)[0][0]]
        )
        search.fill("nobody")
        search.blur()
        expect(search).to_have_value("class 17")

        graph = opened.locator("#figure-2-2")
        graph.scroll_into_view_if_needed()
        expect(graph.locator(".scatterlayer .trace").last.locator(".point")).to_have_count(50)
        graph.locator(".chooser summary").click()
        graph.get_by_role("button", name="None").click()
        graph.get_by_label("Filter").fill("class 17")
        graph.get_by_role("button", name="All listed").click()
        expect(graph.locator(".chooser summary")).to_contain_text("1 of 50")
        opened.keyboard.press("Escape")
        for box in opened.locator(".figure, .listing").all():
            box.scroll_into_view_if_needed()
            expect(box.locator(".main-svg, table").first).to_be_visible()
        assert opened.evaluate("window.harmed") is None
        assert errors == []
        browser.close()
