import numpy as np
import pyarrow.parquet as pq
import pytest
from tests.data.layouts import LABELS, PIXELS, parquet

from haptera.data import CorruptedImages, open_data
from haptera.errors import HapteraError


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("HAPTERA_CACHE", str(tmp_path / "cache"))


def test_a_config_per_corruption_and_a_split_per_severity(tmp_path):
    for corruption in ("fog", "gaussian_noise"):
        for severity in (1, 3):
            parquet(tmp_path / "c" / corruption / f"severity_{severity}-00000-of-00001.parquet", PIXELS // severity)
    data = open_data(tmp_path / "c")
    assert isinstance(data, CorruptedImages)
    assert [(part.shift, part.severity) for part in data.parts] == [
        ("fog", 1.0),
        ("fog", 3.0),
        ("gaussian_noise", 1.0),
        ("gaussian_noise", 3.0),
    ]
    images = data.parts[1].data.images(np.array([4]))
    np.testing.assert_array_equal((images[0] * 255).round().byte(), (PIXELS[4] // 3).transpose(2, 0, 1))


def test_several_files_of_a_split_are_one_data_set_in_order(tmp_path):
    parquet(tmp_path / "r" / "data" / "test-00000-of-00002.parquet", PIXELS[:5], LABELS[:5])
    parquet(tmp_path / "r" / "data" / "test-00001-of-00002.parquet", PIXELS[5:], LABELS[5:])
    data = open_data(tmp_path / "r")
    assert data.targets.tolist() == LABELS.tolist()
    np.testing.assert_array_equal((data.images(np.array([5]))[0] * 255).round().byte(), PIXELS[5].transpose(2, 0, 1))


def test_the_test_split_is_read_beside_others_and_others_alone_are_asked_for(tmp_path):
    parquet(tmp_path / "r" / "train-00000-of-00001.parquet")
    parquet(tmp_path / "r" / "test-00000-of-00001.parquet", PIXELS[:3], LABELS[:3])
    assert len(open_data(tmp_path / "r")) == 3
    assert len(open_data(tmp_path / "r" / "train-*.parquet")) == 12
    parquet(tmp_path / "s" / "extra-00000-of-00001.parquet")
    parquet(tmp_path / "s" / "train-00000-of-00001.parquet")
    with pytest.raises(HapteraError, match="holds the splits extra, train; give the files of one"):
        open_data(tmp_path / "s")


def test_the_parquet_that_the_hub_makes_by_itself(tmp_path):
    parquet(tmp_path / "r" / "default" / "test" / "0000.parquet", PIXELS[:4], LABELS[:4])
    parquet(tmp_path / "r" / "default" / "test" / "0001.parquet", PIXELS[4:], LABELS[4:])
    assert len(open_data(tmp_path / "r")) == 12


def test_configs_with_one_split_are_domains_numbered_through(tmp_path):
    parquet(tmp_path / "r" / "clipart" / "test-00000-of-00001.parquet", PIXELS[:5], LABELS[:5])
    parquet(tmp_path / "r" / "sketch" / "test-00000-of-00001.parquet", PIXELS[5:], LABELS[5:])
    data = open_data(tmp_path / "r")
    assert [part.shift for part in data.parts] == ["clipart", "sketch"]
    assert np.isnan(data.parts[0].severity)
    assert not data.paired
    assert data.parts[1].data.rows.tolist() == list(range(5, 12))


def test_severities_with_other_samples_are_refused(tmp_path):
    parquet(tmp_path / "c" / "fog" / "1-00000-of-00001.parquet")
    parquet(tmp_path / "c" / "fog" / "2-00000-of-00001.parquet", PIXELS[:5], LABELS[:5])
    with pytest.raises(HapteraError, match="do not hold the same samples"):
        open_data(tmp_path / "c")


def test_a_truncated_file_is_named(tmp_path):
    path = parquet(tmp_path / "test.parquet")
    path.write_bytes(path.read_bytes()[:-50])
    with pytest.raises(HapteraError, match=r"cannot read .*test\.parquet"):
        open_data(path)


def test_damage_inside_the_file_is_named_when_it_is_read(tmp_path):
    path = parquet(tmp_path / "test.parquet")
    content = bytearray(path.read_bytes())
    content[100:2000] = bytes(1900)
    path.write_bytes(content)
    with pytest.raises(HapteraError, match=r"test\.parquet"):
        open_data(path).images(np.arange(12))


def test_a_table_without_images_says_which_columns_there_are(tmp_path):
    import pandas as pd

    pd.DataFrame({"text": ["a"], "label": [0]}).to_parquet(tmp_path / "t.parquet")
    with pytest.raises(HapteraError, match="has the columns text, label; one of encoded images"):
        open_data(tmp_path / "t.parquet")


def test_hidden_labels_are_no_labels(tmp_path):
    data = open_data(parquet(tmp_path / "t.parquet", PIXELS, np.full(12, -1)))
    assert data.targets is None


def test_files_that_name_other_classes_or_lack_a_column_are_refused(tmp_path):
    one = parquet(tmp_path / "r" / "test-00000-of-00002.parquet")
    other = parquet(tmp_path / "r" / "test-00001-of-00002.parquet")
    table = pq.read_table(other)
    about = table.schema.metadata[b"huggingface"].replace(b"ant", b"owl")
    pq.write_table(table.replace_schema_metadata({"huggingface": about}), other)
    with pytest.raises(HapteraError, match=r"00001-of-00002\.parquet names other classes than .*00000"):
        open_data(one.parent)
    pq.write_table(table.drop_columns("label"), other)
    with pytest.raises(HapteraError, match=r"00001-of-00002\.parquet"):
        open_data(one.parent)
