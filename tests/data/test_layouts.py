import pickle

import numpy as np
import pytest
import torch
from tests.data.layouts import LABELS, LAYOUTS, NAMES, PIXELS

from haptera.adapters import NoAdaptation
from haptera.data import ItemData, open_data, sample_fingerprint
from haptera.models import Linear
from haptera.run.loop import evaluate
from haptera.streams import Clean


@pytest.fixture(scope="module", autouse=True)
def _own_cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HAPTERA_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def expected():
    """The print of the samples, from arrays that nothing has read."""
    items = [(image.transpose(2, 0, 1), label) for image, label in zip(PIXELS, LABELS, strict=True)]
    return sample_fingerprint(ItemData(items))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_one_data_set_in_every_layout_has_the_same_samples_and_accuracy(layout, expected, tmp_path):
    data = open_data(LAYOUTS[layout](tmp_path / "here"))
    assert sample_fingerprint(data) == expected
    assert data.names in (NAMES, None)  # a tar has no names
    torch.manual_seed(0)
    outputs = evaluate(NoAdaptation(Linear(3, 32, 3)), Clean(data, batch_size=5))
    torch.manual_seed(0)
    plain = Linear(3, 32, 3)(torch.from_numpy(PIXELS).permute(0, 3, 1, 2) / 255).argmax(1)
    assert outputs.correct().mean() == (plain.numpy() == LABELS).mean()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_any_order_and_a_copy_in_another_process_read_the_same_images(layout, tmp_path):
    data = pickle.loads(pickle.dumps(open_data(LAYOUTS[layout](tmp_path / "here"))))
    order = np.array([11, 0, 5, 5, 3])
    np.testing.assert_array_equal((data.images(order) * 255).round().byte().permute(0, 2, 3, 1).numpy(), PIXELS[order])


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_fingerprint_of_the_place_follows_its_files(layout, tmp_path):
    place = LAYOUTS[layout](tmp_path / "here")
    before = open_data(place).fingerprint()
    assert open_data(place).fingerprint() == before
    assert open_data(place, channels=1).fingerprint() != before
