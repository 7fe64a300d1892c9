"""Videos in, tables out: every frame as if it were predicted alone, adapted to the video; others read the tables."""

from fractions import Fraction
from functools import partial

import numpy as np
import pandas as pd
import pytest
import torch

from haptera.adapters import BatchNorm, NoAdaptation, Tent
from haptera.errors import HapteraError
from haptera.files.deeplabcut import read_deeplabcut
from haptera.files.sleap import read_analysis
from haptera.files.video import Video, write_video
from haptera.pose import KeypointLabels, PoseModel, drawn_animals, predict
from haptera.pose.clips import write_clip
from haptera.pose.video import _Frames, learn_video, predict_video

pytest.importorskip("av")
h5py = pytest.importorskip("h5py")
ANIMALS = drawn_animals(2, 20, height=48, width=64)


@pytest.fixture(scope="module")
def clip(tmp_path_factory):
    """A video of 40 frames of two drawn animals."""
    path = tmp_path_factory.mktemp("video") / "clip.mp4"
    images = (ANIMALS.images(np.arange(40)).permute(0, 2, 3, 1).numpy() * 255).round().astype(np.uint8)
    write_video(path, images, Fraction(10))
    return path


@pytest.fixture(scope="module")
def network():
    torch.manual_seed(0)
    model = PoseModel(ANIMALS.parts, settings={"width": 4}, skeleton=ANIMALS.skeleton)
    with torch.no_grad():
        for _ in range(3):  # statistics of training that are not those of this video
            model(torch.rand(8, 3, 48, 64) * 0.3)
    return model.eval()


def test_frames_are_predicted_as_images_are(clip, network, tmp_path):
    found = predict_video(network, clip, tmp_path / "said.csv", batch_size=3)
    expected = predict(network, np.stack(list(Video(clip).read())))
    assert np.allclose(found.poses["none"].keypoints, expected.keypoints, atol=1e-3)
    assert np.allclose(found.poses["none"].confidence, expected.confidence, atol=1e-5)
    assert not list(tmp_path.glob("*.unfinished"))


def test_frames_that_cannot_be_decoded_are_rows_without_keypoints(network, tmp_path, caplog):
    av = pytest.importorskip("av")
    path = tmp_path / "clip.mp4"
    images = (ANIMALS.images(np.arange(40)).permute(0, 2, 3, 1).numpy() * 255).round().astype(np.uint8)
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=10, options={"g": "1", "bf": "0"})
        stream.height, stream.width, stream.pix_fmt = 48, 64, "yuv420p"
        for image in images:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(image, format="rgb24")))
        container.mux(stream.encode())
    expected = predict_video(network, path, tmp_path / "whole.csv", batch_size=2).poses["none"].keypoints
    with av.open(str(path)) as container:
        packets = [packet for packet in container.demux(container.streams.video[0]) if packet.size]
        places = [(packets[number].pos, packets[number].size) for number in (4, 15, 16, 31)]  # 16 begins a piece
    content = bytearray(path.read_bytes())
    for place, size in places:
        content[place : place + size] = bytes(size)
    path.write_bytes(content)
    adapters = {"none": NoAdaptation, "keypoint_labels": partial(KeypointLabels, lr=0.0, threshold=0.0)}
    poses = predict_video(network, path, tmp_path / "said.csv", adapters=adapters, batch_size=2).poses
    for own in poses.values():
        assert np.flatnonzero(np.isnan(own.keypoints).all((1, 2))).tolist() == [4, 15, 16, 31]
        assert (own.confidence[[4, 15, 16, 31]] == 0).all()
    kept = np.setdiff1d(np.arange(40), [4, 15, 16, 31])
    assert np.array_equal(poses["none"].keypoints[kept], expected[kept])
    assert len(read_deeplabcut(tmp_path / "said.csv").files) == 40
    assert write_clip(tmp_path / "out.mp4", Video(path), poses) == 36
    assert "frames that cannot be decoded are missing" in caplog.text


@pytest.mark.long
def test_an_adapter_has_the_statistics_of_the_sample_and_then_rests(clip, network, tmp_path):
    make = partial(BatchNorm, prior=8)
    found = predict_video(network, clip, tmp_path / "said.csv", adapters={"batchnorm": make}, batch_size=7, sample=16)
    sample = torch.from_numpy(Video(clip).sample(16)).permute(0, 3, 1, 2) / 255
    adapter = BatchNorm(network, prior=8)
    adapter(sample)
    adapter.frozen = True
    images = torch.from_numpy(np.stack(list(Video(clip).read()))).permute(0, 3, 1, 2) / 255
    expected = network.decode(torch.cat([adapter(image[None]) for image in images]))[0]
    assert np.allclose(found.poses["batchnorm"].keypoints, expected.numpy(), atol=1e-2)
    assert found.prior == 8
    bare = predict(network, np.stack(list(Video(clip).read()))).keypoints
    assert np.abs(found.poses["batchnorm"].keypoints - bare).max() > 1  # the adapter did something
    other = predict_video(network, clip, tmp_path / "b.csv", adapters={"batchnorm": make}, batch_size=40, sample=16)
    assert np.allclose(other.poses["batchnorm"].keypoints, found.poses["batchnorm"].keypoints, atol=1e-2)


@pytest.mark.long
def test_labels_of_the_video_teach_and_a_stopped_run_ends_with_the_same_table(clip, network, tmp_path, monkeypatch):
    adapters = {"keypoint_labels": partial(KeypointLabels, lr=0.01, threshold=0.0, steps=1, jump=100)}
    run = partial(predict_video, network, clip, adapters=adapters, batch_size=2, sample=9)
    whole = run(tmp_path / "whole.csv")
    make, calls = _Frames.make, []

    def stop(task):
        calls.append(task.span)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return make(task)

    monkeypatch.setattr(_Frames, "make", stop)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "stopped.csv")
    run(tmp_path / "stopped.csv")
    assert calls == [(0, 16), (16, 32), (16, 32), (32, 40)]  # what was finished is kept
    assert (tmp_path / "stopped.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()
    bare = predict(network, np.stack(list(Video(clip).read()))).keypoints
    assert np.abs(whole.poses["keypoint_labels"].keypoints - bare).max() > 1


def test_the_prior_is_chosen_from_the_sample_and_used_for_the_statistics(clip, network):
    auto = learn_video(network, partial(BatchNorm, prior="auto"), Video(clip), None, 16)
    chosen = auto.layers[0].prior
    fixed = learn_video(network, partial(BatchNorm, prior=chosen), Video(clip), None, 16)
    images = torch.rand(2, 3, 48, 64)
    assert torch.allclose(auto(images), fixed(images), atol=1e-5)
    before = auto(images).clone()
    auto(torch.rand(8, 3, 48, 64))
    assert torch.equal(auto(images), before)


def test_the_tables_are_those_of_deeplabcut_and_of_sleap(clip, network, tmp_path):
    poses = predict_video(network, clip, tmp_path / "said.csv", "me").poses["none"]
    lines = (tmp_path / "said.csv").read_text().splitlines()
    assert lines[0].startswith("scorer,me,me,me")
    assert [line.split(",")[0] for line in lines[1:5]] == ["bodyparts", "coords", "0", "1"]
    assert lines[2].split(",")[1:4] == ["x", "y", "likelihood"]
    as_deeplabcut_reads = pd.read_csv(tmp_path / "said.csv", index_col=0, header=[0, 1, 2])
    part = ANIMALS.parts[3]
    assert np.allclose(as_deeplabcut_reads[("me", part, "x")], poses.keypoints[:, 3, 0], atol=1e-4)
    predict_video(network, clip, tmp_path / "said.h5", "me")
    stored = pd.read_hdf(tmp_path / "said.h5")
    assert stored.index.tolist() == list(range(40))
    assert stored.columns.names == ["scorer", "bodyparts", "coords"]
    assert np.allclose(stored[("me", part, "likelihood")], poses.confidence[:, 3], atol=1e-5)
    for name in ("said.csv", "said.h5"):
        assert np.allclose(read_deeplabcut(tmp_path / name).keypoints, poses.keypoints, atol=1e-4)
    predict_video(network, clip, tmp_path / "said.analysis.h5")
    with h5py.File(tmp_path / "said.analysis.h5") as content:
        assert content["tracks"].shape == (1, 2, len(ANIMALS.parts), 40)
        assert content["track_occupancy"].shape == (40, 1)
        assert content["point_scores"].shape == (1, len(ANIMALS.parts), 40)
        assert content["node_names"][3] == part.encode()
        one, two = content["edge_inds"][0]
        assert (ANIMALS.parts[one], ANIMALS.parts[two]) == ANIMALS.skeleton[0]
    again = read_analysis(tmp_path / "said.analysis.h5")
    assert np.allclose(again.keypoints, poses.keypoints, atol=1e-4)
    assert np.allclose(again.confidence, poses.confidence, atol=1e-5)


def test_frames_are_brought_to_the_size_of_training_and_keypoints_back(clip, tmp_path):
    torch.manual_seed(0)
    small = PoseModel(ANIMALS.parts, settings={"width": 4}, size=(24, 40)).eval()
    found = predict_video(small, clip, tmp_path / "said.csv").poses["none"]
    from PIL import Image

    folder = tmp_path / "frames"
    folder.mkdir()
    for place, frame in enumerate(Video(clip).read()):
        Image.fromarray(frame).save(folder / f"{place:03d}.png")
    expected = predict(small, folder)
    assert np.allclose(found.keypoints, expected.keypoints, atol=1e-2)


def test_a_clip_shows_a_panel_for_each_adapter(clip, network, tmp_path):
    makers = {"none": NoAdaptation, "batchnorm": partial(BatchNorm, prior=0)}
    found = predict_video(network, clip, tmp_path / "said.csv", adapters=makers)
    assert list(found.poses) == ["none", "batchnorm"]
    assert np.allclose(read_deeplabcut(tmp_path / "said.csv").keypoints, found.poses["batchnorm"].keypoints, atol=1e-4)
    number = write_clip(tmp_path / "clip.mp4", Video(clip), found.poses, [(0, 1)], frames=5, cutoff=0.0)
    shown = Video(tmp_path / "clip.mp4")
    assert number == len(shown) == 5
    assert (shown.height, shown.width) == (48 + 20, 2 * 64)
    first = next(shown.read()).astype(int)
    assert np.abs(first[20:, :64] - first[20:, 64:]).max() > 60  # dots are elsewhere


def test_what_cannot_be_is_said_before_any_frame_is_read(clip, network, tmp_path):
    with pytest.raises(HapteraError, match="learns from probabilities of classes, which keypoints do not have"):
        predict_video(network, clip, tmp_path / "said.csv", adapters={"tent": Tent})
    with pytest.raises(HapteraError, match=r"a name ending in .csv or .h5 was expected; .analysis.h5 for SLEAP"):
        predict_video(network, clip, tmp_path / "said.txt")
    (tmp_path / "bad.analysis.h5").write_bytes(b"no")
    with pytest.raises(HapteraError, match="it is not an HDF5 file, or damaged"):
        read_analysis(tmp_path / "bad.analysis.h5")
    assert not (tmp_path / "said.csv.unfinished").exists()
