import numpy as np
import pytest
from tests.data.layouts import LABELS, NAMES, PIXELS, cifar_binary

from haptera.data import open_data
from haptera.errors import HapteraError


def test_cifar_100_is_read_with_its_fine_labels(tmp_path):
    planes = PIXELS.transpose(0, 3, 1, 2).reshape(len(PIXELS), -1)
    coarse = np.full((len(PIXELS), 1), 19, np.uint8)
    records = np.concatenate([coarse, LABELS[:, None].astype(np.uint8), planes], axis=1)
    (tmp_path / "test.bin").write_bytes(records.tobytes())
    (tmp_path / "fine_label_names.txt").write_text("\n".join(NAMES))
    data = open_data(tmp_path)
    assert data.targets.tolist() == LABELS.tolist()
    assert data.names == NAMES
    np.testing.assert_array_equal((data.images(np.array([7]))[0] * 255).round().byte(), PIXELS[7].transpose(2, 0, 1))


def test_a_file_that_is_cut_short_is_refused(tmp_path):
    path = cifar_binary(tmp_path) / "test_batch.bin"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(HapteraError, match="a multiple of 3,073"):
        open_data(tmp_path)


def test_the_python_version_is_refused_as_it_is_made_of_pickles(tmp_path):
    for name in ("test_batch", "data_batch_1", "batches.meta"):
        (tmp_path / name).write_bytes(b"\x80\x04.")
    with pytest.raises(HapteraError, match="take the binary version"):
        open_data(tmp_path)
