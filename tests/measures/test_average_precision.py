"""Average precision of poses is COCO's."""

import contextlib
import io

import numpy as np
import pytest
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from haptera.measures.average_precision import average_precision
from haptera.measures.keypoints import object_keypoint_similarity

PARTS, SIGMA = 5, 0.1


def scene(seed, frames=12):
    """Frames of up to three animals, predictions near them, some twice, some of nothing."""
    random = np.random.default_rng(seed)
    for _ in range(frames):
        animals = random.uniform(0, 200, (random.integers(0, 4), PARTS, 2))
        missing = random.random(animals.shape[:2]) < 0.2
        missing[:, 0] = False
        areas = random.uniform(2000, 8000, len(animals))
        noise = random.choice([2.0, 8.0, 20.0, 60.0], len(animals))
        near = animals + random.normal(size=animals.shape) * noise[:, None, None]
        twice = near[:1] + random.normal(size=(len(near[:1]), PARTS, 2))
        ghost = random.uniform(0, 200, (random.integers(0, 2), PARTS, 2))
        predicted = np.concatenate([near, twice, ghost])
        yield animals, missing, areas, predicted, random.random(len(predicted)).round(2)


@pytest.mark.parametrize("seed", range(3))
def test_it_agrees_with_pycocotools(seed):
    annotations, results, similarity, scores = [], [], [], []
    for image, (animals, missing, areas, predicted, sure) in enumerate(scene(seed)):
        labelled = np.where(missing[:, :, None], np.nan, animals)
        matrix = [
            object_keypoint_similarity(np.repeat(each[None], len(animals), 0), labelled, areas, SIGMA)
            for each in predicted
        ]
        similarity.append(np.array(matrix).reshape(len(predicted), len(animals)))
        scores.append(sure)
        for points, hidden, area in zip(animals, missing, areas, strict=True):
            flat = np.concatenate([points, np.where(hidden, 0, 2)[:, None]], 1).ravel().tolist()
            entry = {"id": len(annotations) + 1, "image_id": image, "category_id": 1, "keypoints": flat}
            shown = {"num_keypoints": int((~hidden).sum()), "area": float(area), "iscrowd": 0, "bbox": [0, 0, 1, 1]}
            annotations.append(entry | shown)
        for points, score in zip(predicted, sure, strict=True):
            flat = np.concatenate([points, np.ones((PARTS, 1))], 1).ravel().tolist()
            results.append({"image_id": image, "category_id": 1, "keypoints": flat, "score": float(score)})
    with contextlib.redirect_stdout(io.StringIO()):
        truth = COCO()
        truth.dataset = {
            "images": [{"id": k} for k in range(12)],
            "annotations": annotations,
            "categories": [{"id": 1}],
        }
        truth.createIndex()
        peer = COCOeval(truth, truth.loadRes(results), "keypoints")
        peer.params.kpt_oks_sigmas = np.full(PARTS, SIGMA)
        peer.evaluate()
        peer.accumulate()
        peer.summarize()
    found = average_precision(similarity, scores)
    assert found.animals == len(annotations)
    assert 0.02 < found.value < 0.9
    ours = [found.value, found.loose, found.strict, found.recall]
    assert ours == pytest.approx([peer.stats[place] for place in (0, 1, 2, 5)], abs=1e-12)


def test_nothing_predicted_is_nothing_found():
    found = average_precision([np.zeros((0, 2)), np.zeros((0, 0))], [np.zeros(0), np.zeros(0)])
    assert (found.value, found.recall, found.animals) == (0.0, 0.0, 2)
    assert np.isnan(average_precision([np.zeros((2, 0))], [np.ones(2)]).value)
