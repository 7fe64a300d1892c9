"""The section of images: a strip for each condition, an error with its label, prediction and confidence."""

from dataclasses import replace

from haptera.report.page import render
from haptera.report.study.images import Sample, section

URI = "data:image/png;base64,AAAA"
CLEAN = Sample("sample", "net", "none", "clean", 0.0, "cat", URI)
ERROR = Sample("error", "net", "none", "fog", 5.0, "cat", URI, "dog <i>", 0.9996)


def test_nothing_is_said_where_no_images_were_kept() -> None:
    assert section([]) is None


def test_images_under_the_same_condition_are_one_strip() -> None:
    samples = [CLEAN, replace(CLEAN, label="dog"), replace(CLEAN, shift="fog", severity=5.0)]
    made = section(samples)
    assert made is not None
    (gallery,) = made.galleries
    assert [(tile.text, len(tile.images), tile.detail) for tile in gallery.tiles] == [
        ("clean", 2, "cat, dog"),
        ("fog 5", 1, "cat"),
    ]


def test_an_error_says_how_sure_the_model_was_and_never_that_it_was_certain() -> None:
    made = section([ERROR, replace(ERROR, confidence=0.7, adapter="tent"), replace(ERROR, confidence=None)])
    assert made is not None
    assert [tile.detail for tile in made.galleries[0].tiles] == [
        "over 99.9 % sure · fog 5 · net",
        "70 % sure · fog 5 · net with tent",
        "fog 5 · net",
    ]
    page = render([made], [], title="t", settings={})
    assert page.count(URI) == 3
    assert "cat → dog &lt;i&gt;" in page


def test_the_caption_says_whether_images_are_shown_clean() -> None:
    fog = replace(CLEAN, shift="fog", severity=5.0)
    alone, both = (made.galleries[0].caption for shown in ([fog], [CLEAN, fog]) if (made := section(shown)))
    assert alone.endswith("No stream of the study shows them clean.")
    assert "clean and under each shift" in both
