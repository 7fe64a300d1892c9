"""Errors over many shifts: means by hand, and ratios against published numbers."""

import numpy as np
import pytest
from tests.measures.test_compare import DOMAINS, ROBUST, robust_table

from haptera.catalog import entries, find
from haptera.errors import HapteraError
from haptera.families import FAMILIES
from haptera.measures import family_error, mce, mde, mean_error
from haptera.measures.corruptions import ALEXNET, ALEXNET_DOMAINS, ALEXNET_HOLDOUT
from haptera.table import tidy


def wrong(shift, severity, value, **names):
    row = {"model": "net", "stream": "corruptions", "adapter": "none", "shift": shift, "severity": severity, "seed": 0}
    return row | {"measure": "error", "value": value, "low": value - 0.01, "high": value + 0.01, "n": 100} | names


def imagenet_c(seed=0, **names):
    """Random errors at every corruption and severity, hold-out ones and clean data beside them."""
    generator = np.random.default_rng(seed)
    shifts = [shift for family in FAMILIES.values() for shift in family]
    rows = [wrong(shift, level, generator.uniform(0.2, 0.9), **names) for shift in shifts for level in range(1, 6)]
    return [*rows, wrong("clean", 0, 0.1, **names)]


def test_families_are_those_of_the_shifts():
    shifts = {name: find("shifts", name) for name in entries("shifts")}
    for family, names in FAMILIES.items():
        for name in names:
            assert ("holdout" if shifts[name].holdout else shifts[name].family) == family
    tested = [name for family, names in FAMILIES.items() if family != "holdout" for name in names]
    assert sorted(ALEXNET) == sorted(tested)


def test_the_mean_error_counts_every_test_shift_alike():
    rows = [wrong("fog", 1, 0.2), wrong("fog", 5, 0.6), wrong("snow", 5, 0.9)]
    apart = [wrong("clean", 0, 0.1), wrong("fog", 0, 0.1), wrong("speckle_noise", 3, 0.5)]
    [row] = mean_error(tidy(rows + apart))
    assert row["value"] == pytest.approx((0.4 + 0.9) / 2)
    assert (row["low"], row["high"], row["n"]) == (pytest.approx(0.64), pytest.approx(0.66), 300)


def test_the_error_of_a_family_is_the_mean_over_its_shifts():
    rows = imagenet_c()
    found = {row["shift"]: row["value"] for row in family_error(tidy(rows))}
    assert set(found) == {"noise", "blur", "weather", "digital", "holdout"}
    for family, shifts in FAMILIES.items():
        means = [np.mean([row["value"] for row in rows if row["shift"] == shift]) for shift in shifts]
        assert found[family] == pytest.approx(np.mean(means))


def test_mce_on_dev_divides_by_alexnet_on_the_hold_out_corruptions():
    rows = imagenet_c()
    [row] = mce(tidy(rows), reference="alexnet", split="dev")
    errors = {"speckle_noise": 0.845388, "gaussian_blur": 0.787108, "spatter": 0.717512, "saturate": 0.658248}
    assert errors == ALEXNET_HOLDOUT
    ratios = [sum(row["value"] for row in rows if row["shift"] == shift) / (5 * errors[shift]) for shift in errors]
    assert row["value"] == pytest.approx(np.mean(ratios))
    assert row["split"] == "dev"
    tested = [row for row in rows if row["shift"] not in errors]
    with pytest.raises(HapteraError, match="needs the 4 hold-out corruptions at severities 1 to 5, 20 in all"):
        mce(tidy([*tested, wrong("spatter", 1, 0.5)]), reference="alexnet", split="dev")
    with pytest.raises(HapteraError, match="unknown split 'devel'; did you mean 'dev'"):
        mce(tidy(rows), reference="alexnet", split="devel")


def test_mce_divides_by_alexnet_corruption_by_corruption():
    rows = imagenet_c()
    [row] = mce(tidy(rows), reference="alexnet")
    ratios = []
    for shift, error in ALEXNET.items():
        own = [row["value"] for row in rows if row["shift"] == shift]
        ratios.append(sum(own) / (5 * error))
    assert row["value"] == pytest.approx(np.mean(ratios))


def test_mce_of_alexnet_itself_is_one():
    rows = [wrong(shift, level, error) for shift, error in ALEXNET.items() for level in range(1, 6)]
    assert mce(tidy(rows), reference="alexnet")[0]["value"] == pytest.approx(1)


def test_mce_of_resnet_50_from_its_published_corruption_errors():
    # Hendrycks and Dietterich (2019), table 1, CE of a ResNet-50 in whole per cent; the mean of the exact ones is 76.7
    published = {
        "gaussian_noise": 80, "shot_noise": 82, "impulse_noise": 83, "defocus_blur": 75, "glass_blur": 89,
        "motion_blur": 78, "zoom_blur": 80, "snow": 78, "frost": 75, "fog": 66, "brightness": 57, "contrast": 71,
        "elastic_transform": 85, "pixelate": 77, "jpeg_compression": 77,
    }  # fmt: skip
    rows = [wrong(shift, level, ce / 100 * ALEXNET[shift]) for shift, ce in published.items() for level in range(1, 6)]
    assert mce(tidy(rows), reference="alexnet")[0]["value"] == pytest.approx(0.767, abs=0.003)


def test_alexnet_is_refused_where_a_corruption_or_severity_is_missing():
    rows = imagenet_c()
    lacking = [row for row in rows if (row["shift"], row["severity"]) != ("fog", 4)]
    with pytest.raises(HapteraError, match="15 test corruptions at severities 1 to 5, 75 in all; no stream"):
        mce(tidy(lacking), reference="alexnet")
    both = tidy(rows + [row | {"model": "other"} for row in lacking])
    assert [row["model"] for row in mce(both, reference="alexnet")] == ["net"]


def test_a_model_of_the_table_can_be_the_measure_of_the_others():
    base, other = imagenet_c(0), imagenet_c(1, model="other")
    adapted = imagenet_c(2, adapter="tent")
    rows = {(row["model"], row["adapter"]): row for row in mce(tidy(base + other + adapted), reference="net")}
    assert rows["net", "none"]["value"] == pytest.approx(1)
    for key, own in ((("other", "none"), other), (("net", "tent"), adapted)):
        ratios = []
        for shift in ALEXNET:
            mine, theirs = ([r["value"] for r in rows if r["shift"] == shift] for rows in (own, base))
            ratios.append(sum(mine) / sum(theirs))
        assert rows[key]["value"] == pytest.approx(np.mean(ratios))


def test_a_model_that_met_what_the_reference_did_not_is_left_out():
    rows = [wrong("fog", 1, 0.2), wrong("fog", 1, 0.4, model="other"), wrong("fog", 2, 0.4, model="other")]
    assert [row["model"] for row in mce(tidy(rows), reference="net")] == ["net"]


def test_a_reference_must_be_named_without_doubt():
    table = tidy(imagenet_c())
    with pytest.raises(HapteraError, match="unknown reference 'alexnte'; did you mean 'alexnet'"):
        mce(table, reference="alexnte")
    with pytest.raises(HapteraError, match="is a model of this table and also the published AlexNet"):
        mce(tidy(imagenet_c(model="alexnet")), reference="alexnet")
    with pytest.raises(HapteraError, match="'net' was measured with adapters only"):
        mce(tidy(imagenet_c(adapter="tent")), reference="net")


PRINTED = {"vanilla": 88.2, "SIN": 85.6, "ANT": 86.9, "ANT+SIN": 83.1, "AugMix": 85.4, "DeepAugment": 85.6}
PRINTED |= {"DeepAug+Augmix": 83.4}


def test_mde_of_unadapted_models_is_as_printed():
    for row in mde(robust_table(), reference="alexnet"):
        assert 100 * row["value"] == pytest.approx(PRINTED[row["model"]], abs=0.15)
        assert row["stream"] == "imagenet-d"


def test_a_domain_may_be_a_stream():
    rows = [
        wrong("clean", 0, error / 100, stream=domain) for domain, error in zip(DOMAINS, ROBUST["vanilla"], strict=False)
    ]
    [row] = mde(tidy(rows), reference="alexnet")
    assert 100 * row["value"] == pytest.approx(88.2, abs=0.1)
    with pytest.raises(HapteraError, match="there is no real"):
        mde(tidy([row for row in rows if row["stream"] != "real"]), reference="alexnet")


def test_mde_against_a_model_of_the_table():
    rows = {row["model"]: row["value"] for row in mde(robust_table(), reference="vanilla")}
    assert rows["vanilla"] == pytest.approx(1)
    own, base = ROBUST["SIN"][:6], ROBUST["vanilla"][:6]
    assert rows["SIN"] == pytest.approx(np.mean([one / two for one, two in zip(own, base, strict=True)]))
    assert set(ALEXNET_DOMAINS) == set(DOMAINS)


def test_mce_of_corruptions_that_were_met_twice_is_over_both_visits():
    first, second = imagenet_c(0), imagenet_c(1)
    alone = [mce(tidy(rows), reference="alexnet")[0]["value"] for rows in (first, second)]
    both = [row | {"visit": 1} for row in first] + [row | {"visit": 2} for row in second]
    [row] = mce(tidy(both), reference="alexnet")
    assert row["value"] == pytest.approx(np.mean(alone))
