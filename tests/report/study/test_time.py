"""What a reader sees first along a stream."""

import pandas as pd

from haptera.report.study.cost import section as cost
from haptera.report.study.time import opening


def points(rows: list[tuple]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["stream", "model", "adapter", "shift", "accuracy"])


def test_the_page_opens_on_the_stream_with_most_shifts():
    lively = [("continual", "net", "none", shift, 0.5) for shift in ("fog", "snow")]
    rows = [("clean", "net", "none", "clean", 0.9), ("corruptions: fog 1", "net", "none", "fog", 0.2), *lively]
    assert opening(points(rows)) == {"stream": "continual"}


def test_among_equals_it_opens_where_adapters_differ_most():
    rows = [(f"corruptions: {shift} 1", "net", adapter, shift, value)
            for shift, adapter, value in (("fog", "none", 0.5), ("fog", "tent", 0.6), ("snow", "none", 0.2),
                                          ("snow", "tent", 0.7))]  # fmt: skip
    assert opening(points(rows)) == {"stream": "corruptions: snow 1"}


def test_clean_data_alone_is_shown_as_it_is():
    assert opening(points([("clean", "net", "none", "clean", 0.9)])) == {}


def test_points_of_several_models_are_named_and_those_of_one_are_not(make):
    [several], [one] = (cost(make(models=names)).figures for names in (("mlp", "vit"), ("mlp",)))
    assert several.names == "model"
    assert one.names is None
