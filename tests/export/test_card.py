"""Model cards, read back by huggingface_hub's parsers."""

import pandas as pd
import pytest
import yaml
from tests.export.conftest import digits, forget_last_cell, network
from tests.export.test_record import Answer

from haptera.adapters import NoAdaptation
from haptera.errors import HapteraError
from haptera.export import model_card
from haptera.run.study import Study
from haptera.shifts import Contrast
from haptera.streams import Clean, Corruptions

hub = pytest.importorskip("huggingface_hub")
pytestmark = pytest.mark.long

OLD = """---
license: mit   # chosen by the lawyers
tags: [vision]
model-index:
- name: mine
  results:
  - task: {type: image-classification}
    dataset: {name: CIFAR-10, type: cifar10}
    metrics:
    - {type: accuracy, value: 0.9}
datasets:
- cifar10
---

# Mine

Words of mine.
"""


@pytest.fixture(scope="module")
def made(study):
    return model_card(study)


def test_the_hub_reads_every_accuracy_with_its_interval(made, study):
    card = hub.ModelCard(made.text)
    assert card.data.model_name == "net"
    table = pd.read_parquet(study / "table.parquet")
    rows = table[(table["measure"] == "accuracy") & (table["stream"] == "corruptions")]
    for adapter, own in rows.groupby("adapter"):
        results = [each for each in card.data.eval_results if each.metric_args["adapter"] == adapter]
        assert {each.dataset_config for each in results} == {
            "continual/mean", "continual/gaussian_noise", "continual/contrast",
            "corruptions/mean", "corruptions/contrast",
        }  # fmt: skip
        (found,) = [each for each in results if each.dataset_config == "corruptions/contrast"]
        assert (found.task_type, found.metric_type) == ("image-classification", "accuracy")
        assert found.metric_value == pytest.approx(own["value"].mean(), abs=1e-6)  # of two severities
        assert found.metric_args["low"] == pytest.approx(own["low"].mean(), abs=1e-6)
        assert found.metric_args["high"] == pytest.approx(own["high"].mean(), abs=1e-6)
    assert "## Robustness" in card.text
    assert "| adapter | Gauss. | Contr. | mean |" in card.text


def test_an_update_changes_what_haptera_wrote_and_nothing_else(made, own_study, tmp_path):
    path = tmp_path / "README.md"
    path.write_text(OLD)
    made.update(path)
    once = path.read_text()
    assert "license: mit   # chosen by the lawyers\ntags: [vision]\n" in once
    assert "datasets:\n- cifar10\n---\n\n# Mine\n\nWords of mine.\n" in once
    card = hub.ModelCard.load(path)
    assert card.data.model_name == "mine"
    assert [each.metric_value for each in card.data.eval_results if each.dataset_type == "cifar10"] == [0.9]
    count = len(card.data.eval_results)
    assert count == 11  # theirs, and five places for each of two adapters
    made.update(path)
    assert path.read_text() == once
    path.write_text(once + "\nMore words.\n")
    forget_last_cell(own_study)
    model_card(own_study).update(path)
    text = path.read_text()
    assert text.count("<!-- haptera") == 1
    assert "1 of 6 cells have not been run yet" in text
    assert text.endswith("\nMore words.\n")
    assert len(hub.ModelCard.load(path).data.eval_results) <= count


def test_line_ends_of_the_card_stay(made, tmp_path):
    path = tmp_path / "README.md"
    path.write_bytes(OLD.replace("\n", "\r\n").encode())
    for _ in range(2):
        made.update(path)
        assert path.read_bytes().count(b"\n") == path.read_bytes().count(b"\r\n")
    assert hub.ModelCard.load(path).data.model_name == "mine"


def test_evaluation_results_are_as_the_hub_documents_them(study, tmp_path):
    card = model_card(study, dataset="org/digits-c")
    paths = card.save(tmp_path / "README.md")
    assert sorted(path.parent.name for path in paths[1:]) == [".eval_results"] * 4  # two streams, two adapters
    (path,) = [path for path in paths if path.name == "haptera-corruptions-none.yaml"]
    entries = hub.parse_eval_result_entries(yaml.safe_load(path.read_text()))
    assert [(each.dataset_id, each.task_id) for each in entries] == [
        ("org/digits-c", "mean"),
        ("org/digits-c", "contrast"),
    ]
    results = hub.ModelCard.load(tmp_path / "README.md").data.eval_results
    (same,) = [
        each
        for each in results
        if each.dataset_config == "corruptions/contrast" and each.metric_args["adapter"] == "none"
    ]
    assert entries[1].value == same.metric_value
    assert "adapter none" in entries[1].notes
    only = model_card(study, dataset="org/digits-c", task_id="robust").files["haptera-corruptions-none.yaml"]
    assert [each["dataset"]["task_id"] for each in only] == ["robust"]


def test_a_card_of_one_of_several_models_speaks_of_it_alone(tmp_path):
    streams = [Clean(digits(), batch_size=20), Corruptions(digits(), (Contrast,), severities=(1,), batch_size=20)]
    Study({"a": network(0), "b": network(1)}, streams, {"none": NoAdaptation}, out=tmp_path / "two").run(progress=False)
    with pytest.raises(HapteraError, match="two has 2 models, and a card is about one; say which with --model: a, b"):
        model_card(tmp_path / "two")
    with pytest.raises(HapteraError, match="unknown model 'c'"):
        model_card(tmp_path / "two", "c")
    for name in ("a", "b"):
        card = model_card(tmp_path / "two", name)
        assert "models" not in card.section
        assert f"- {name} keeps an accuracy of" in card.section
        configs = [each.dataset_config for each in hub.ModelCard(card.text).data.eval_results]
        assert sorted(configs) == ["clean", "corruptions/contrast", "corruptions/mean"]


def test_an_analysis_becomes_a_section_without_results(tmp_path):
    card = model_card(Answer())
    assert "- It fits." in card.section
    assert not card.text.startswith("---")
    path = tmp_path / "README.md"
    path.write_text(OLD)
    card.update(path)
    assert hub.ModelCard.load(path).data.eval_results[0].metric_value == 0.9


def test_a_card_that_is_there_is_not_overwritten(made, tmp_path):
    path = tmp_path / "README.md"
    made.save(path)
    made.save(path)  # the same
    path.write_text(OLD)
    with pytest.raises(HapteraError, match=r"README.md is there already; --update"):
        made.save(path)
    assert path.read_text() == OLD


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("---\na: [\n---\n", "the head of the card is not YAML"),
        ("---\n- a\n---\n", "the head of the card holds a list"),
        ("---\nmodel-index: 3\n---\n", "model-index in the head of the card is not a list of models"),
        (
            "<!-- haptera audit: what stands here is replaced by `haptera export card` -->\n",
            "and no '<!-- /haptera audit",
        ),
        ("---\n{license: mit}\n---\n", "the head of the card is not YAML|without changing other keys"),
    ],
)
def test_a_damaged_card_is_refused_and_stays(made, tmp_path, text, message):
    path = tmp_path / "README.md"
    path.write_text(text)
    with pytest.raises(HapteraError, match=message):
        made.update(path)
    assert path.read_text() == text


def test_bad_names_are_refused(made, study, tmp_path):
    with pytest.raises(HapteraError, match="ORG/NAME was expected"):
        model_card(study, dataset="digits")
    with pytest.raises(HapteraError, match="there is no file"):
        made.update(tmp_path / "README.md")
    (tmp_path / "README.md").write_bytes(b"\xff\xfe")
    with pytest.raises(HapteraError, match="not text in UTF-8"):
        made.update(tmp_path / "README.md")
