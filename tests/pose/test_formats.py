"""Files of SLEAP and Lightning Pose, and who is who: what is read is what is there, and bad input is a sentence."""

import io
import json
import logging

import h5py
import numpy as np
import pytest
from PIL import Image

from haptera.errors import HapteraError
from haptera.files.deeplabcut import read_deeplabcut
from haptera.files.keypoints import KeypointTable
from haptera.files.sleap import read_analysis
from haptera.files.slp import read_slp
from haptera.pose import PoseData, name_individuals, open_pose, score_predictions, split_time
from haptera.pose.labels import read_predictions

FRAME = [
    ("frame_id", "u8"),
    ("video", "u4"),
    ("frame_idx", "u8"),
    ("instance_id_start", "u8"),
    ("instance_id_end", "u8"),
]
INSTANCE = [
    *(("instance_id", "i8"), ("instance_type", "u1"), ("frame_id", "u8"), ("skeleton", "u4"), ("track", "i4")),
    *(("from_predicted", "i8"), ("score", "f4"), ("point_id_start", "u8"), ("point_id_end", "u8")),
]
POINT = [("x", "f8"), ("y", "f8"), ("visible", "?"), ("complete", "?")]
BODY = {"py/reduce": [{"py/type": "sleap.skeleton.EdgeType"}, {"py/tuple": [1]}]}
SYMMETRY = {"py/reduce": [{"py/type": "sleap.skeleton.EdgeType"}, {"py/tuple": [2]}]}
LINKS = [(0, 1, BODY), (0, 2, SYMMETRY), (1, 2, {"py/id": 1})]
COLOURS = [(250, 0, 0), (0, 250, 0)]


def write_slp(path, tracks=("ina", "rex"), embedded=True, version=1.3, predicted=False):
    """Frames 4 and 9 of a clip with a row for each track; the tail of the first is hidden."""
    places = np.arange(2 * len(tracks) * 3 * 2, dtype=float).reshape(-1, 3, 2) % 30 + 1
    points = np.zeros(places.shape[0] * 3, [*POINT, ("score", "f8")])
    points["x"], points["y"], points["visible"], points["score"] = *places.reshape(-1, 2).T, True, 1.02
    points["visible"][2] = False
    number = len(tracks)
    frames = np.array([(k, 0, (4, 9)[k], k * number, (k + 1) * number) for k in range(2)], FRAME)
    kind = int(predicted)
    made = [(k, kind, k // number, 0, k % number, -1, 0.5, 3 * k, 3 * k + 3) for k in range(2 * number)]
    links = [{"source": one, "target": two, "type": kind} for one, two, kind in LINKS]
    about = {"skeletons": [{"nodes": [{"id": 2}, {"id": 0}, {"id": 1}], "links": links}]}
    about["nodes"] = [{"name": name} for name in ("nose", "ear", "tail")]
    with h5py.File(path, "w") as file:
        file["frames"], file["instances"] = frames, np.array(made, INSTANCE)
        plain = points[[name for name, _ in POINT]].astype(POINT)
        file["points"] = plain[: 0 if predicted else None]
        file["pred_points"] = points[: None if predicted else 0]
        file["tracks_json"] = [json.dumps([0, name]) for name in tracks]
        file["videos_json"] = [
            json.dumps({"filename": "old/place/clip.mp4", "backend": {"filename": "old/place/clip.mp4"}})
        ]
        group = file.create_group("metadata")
        group.attrs["format_id"], group.attrs["json"] = version, np.bytes_(json.dumps(about))
        if embedded:
            images = []
            for colour in COLOURS:
                content = io.BytesIO()
                Image.new("RGB", (48, 40), colour).save(content, "PNG")
                images.append(np.frombuffer(content.getvalue(), np.int8))
            kept = np.zeros((2, max(map(len, images))), np.int8)
            for row, image in enumerate(images):
                kept[row, : len(image)] = image
            file["video0/video"], file["video0/frame_numbers"] = kept, [4, 9]
            file["video0/video"].attrs["format"] = "png"
    return places


def test_labels_of_sleap_are_read_with_the_images_in_the_file(tmp_path):
    places = write_slp(tmp_path / "two.pkg.slp")
    data = open_pose(tmp_path / "two.pkg.slp")
    assert data.parts == ("tail", "nose", "ear")  # in the order of the skeleton
    assert data.skeleton == (("nose", "ear"), ("ear", "tail"))  # symmetry is not a bone
    assert data.files.tolist() == ["clip/4"] * 2 + ["clip/9"] * 2
    assert data.animals.tolist() == ["ina", "rex"] * 2
    expected = places.copy()
    expected[0, 2] = np.nan
    assert np.allclose(data.in_source(data.keypoints), expected, equal_nan=True)
    assert data.images(np.array([3]))[0].amax((1, 2)).tolist() == pytest.approx([0, 250 / 255, 0])
    assert set(data.individuals) == {"clip"}


def test_before_version_1_1_a_corner_was_the_origin(tmp_path):
    places = write_slp(tmp_path / "old.slp", ("ina",), version=1.0)
    table = read_slp(tmp_path / "old.slp").table
    assert table.animals is None
    assert np.allclose(table.keypoints[1], places[1] - 0.5)


def test_predictions_of_sleap_are_scored_against_its_labels(tmp_path):
    write_slp(tmp_path / "truth.slp", embedded=False)
    write_slp(tmp_path / "said.slp", embedded=False, predicted=True)
    scores = score_predictions(tmp_path / "said.slp", tmp_path / "truth.slp").table()
    assert (scores.loc[scores["measure"] == "pixel_error", "value"] == 0).all()
    assert read_predictions(tmp_path / "said.slp").confidence.max() == 1  # 1.02 of an interpolated map
    with pytest.raises(HapteraError, match="has no labels; it has 4 predictions"):
        open_pose(tmp_path / "said.slp")
    with pytest.raises(HapteraError, match=r"truth.slp names old/place/clip.mp4, which is neither there nor beside it"):
        open_pose(tmp_path / "truth.slp")


def test_a_file_that_is_not_of_sleap_is_refused(tmp_path):
    (tmp_path / "text.slp").write_text("no")
    with pytest.raises(HapteraError, match="it is not an HDF5 file, or damaged"):
        read_slp(tmp_path / "text.slp")
    with h5py.File(tmp_path / "other.slp", "w") as file:
        file["frames"] = [1]
    with pytest.raises(HapteraError, match=r"is not a file of SLEAP's labels: it has no 'metadata'"):
        read_slp(tmp_path / "other.slp")


def test_an_analysis_file_may_say_the_order_of_its_axes(tmp_path):
    tracks = np.arange(2 * 2 * 3 * 5, dtype=float).reshape(5, 2, 3, 2)  # frames, tracks, nodes, xy
    for name, dims in (("plain", None), ("named", ["frame", "track", "node", "xy"])):
        with h5py.File(tmp_path / f"{name}.analysis.h5", "w") as file:
            file["tracks"] = tracks if dims else tracks.transpose(1, 3, 2, 0)
            file["node_names"] = [b"nose", b"ear", b"tail"]
            if dims:
                file["tracks"].attrs["dims"] = json.dumps(dims)
        found = read_analysis(tmp_path / f"{name}.analysis.h5")
        assert np.array_equal(found.keypoints.reshape(5, 2, 3, 2), tracks)


LIGHTNING = """scorer,net,net,net,net,net,net,set
bodyparts,nose,nose,nose,tail,tail,tail,
coords,x,y,likelihood,x,y,likelihood,
labeled-data/clip/img01.png,1.5,2.5,0.9,3,4,0.2,train
labeled-data/clip/img02.png,5,6,1.0,7,8,0.7,validation
"""
VISIBLE = """scorer, me, me, me, me, me, me
bodyparts, nose, nose, nose, tail, tail, tail
coords, x, y, visible, x, y, visible
img01.png, 1, 2, 2, 3, 4, 1
img02.png, 5, 6, 2, , , 0
"""


def test_tables_of_lightning_pose_are_read(tmp_path):
    (tmp_path / "predictions.csv").write_text(LIGHTNING)
    found = read_deeplabcut(tmp_path / "predictions.csv")
    assert (found.scorer, found.parts) == ("net", ("nose", "tail"))
    assert found.keypoints[0].tolist() == [[1.5, 2.5], [3, 4]]
    assert found.confidence.tolist() == [[0.9, 0.2], [1.0, 0.7]]
    (tmp_path / "CollectedData.csv").write_text(VISIBLE)
    for number in (1, 2):
        Image.new("RGB", (40, 40)).save(tmp_path / f"img0{number}.png")
    data = open_pose(tmp_path)
    assert np.isnan(data.keypoints[:, 1]).all()  # hidden, whatever the coordinates
    assert data.keypoints[:, 0].tolist() == [[1, 2], [5, 6]]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("0.9", "1.9", r"the likelihood of 'nose' in labeled-data/clip/img01.png is 1.9; a number from 0 to 1"),
        ("0.9", "-0.1", "is -0.1; a number from 0 to 1"),
        ("img02", "img01", "img01.png is there twice"),
        (",0.7,validation", "", "has 6 cells, 8 were expected"),
        ("coords,x,y,likelihood,x", "coords,x,y,likelihood,z", "has no column 'x' of the part 'tail'"),
    ],
)
def test_a_bad_table_is_refused_with_its_place(tmp_path, old, new, message):
    (tmp_path / "bad.csv").write_text(LIGHTNING.replace(old, new, 1))
    with pytest.raises(HapteraError, match=message):
        read_deeplabcut(tmp_path / "bad.csv")


def test_predictions_that_are_nan_are_misses(tmp_path):
    (tmp_path / "said.csv").write_text(LIGHTNING.replace("5,6,1.0", "nan,nan,nan"))
    (tmp_path / "truth.csv").write_text(LIGHTNING.replace("likelihood", "other"))
    scores = score_predictions(tmp_path / "said.csv", tmp_path / "truth.csv")
    every = scores.table().query("part == '' and individual == ''").set_index("measure")
    assert every.loc["pck", "value"] == 0.75
    assert every.loc["pixel_error", ["value", "missing"]].tolist() == [0, 1]


FILES = ["day1/rex_1.png", "day1/ina_2.png", "day2/rex_3.png"]


def test_individuals_are_named_by_a_table_or_a_pattern(tmp_path, caplog):
    table = tmp_path / "who.csv"
    table.write_text("video,individual\nday1,rex\nday2,ina\nday3,tom\n")
    with caplog.at_level(logging.WARNING):
        assert name_individuals(FILES, str(table)).tolist() == ["rex", "rex", "ina"]
    assert "names day3, of which there is no labelled frame" in caplog.text
    table.write_text("file,individual\nrex_1.png,rex\nday1/ina_2.png,ina\nrex_3.png,rex\n")
    assert name_individuals(FILES, str(table)).tolist() == ["rex", "ina", "rex"]
    assert name_individuals(FILES, "pattern:(rex|ina)").tolist() == ["rex", "ina", "rex"]
    assert name_individuals(FILES).tolist() == ["day1", "day1", "day2"]
    for content, message in (
        ("video,individual\nday1,rex\n", r"does not say whose day2/rex_3.png is"),
        ("video,individual\nday1,rex\nday1,ina\n", "says that day1 is 'rex' and 'ina'"),
        ("name,who\nday1,rex\n", r"has the columns name, who; video \(or file\) and individual"),
    ):
        table.write_text(content)
        with pytest.raises(HapteraError, match=message):
            name_individuals(FILES, str(table))
    for by, message in (
        ("pattern:(", "is not a regular expression"),
        ("pattern:tom", "finds no individual in day1/rex_1.png"),
        ("animal", "the labels do not name animals"),
        ("none.csv", "there is no table of individuals"),
    ):
        with pytest.raises(HapteraError, match=message):
            name_individuals(FILES, by)


def test_two_folders_of_one_name_are_told_of(caplog):
    assert name_individuals(["rex/cam1/1.png", "ina/cam1/1.png"]).tolist() == ["cam1", "cam1"]
    assert "rex/cam1 and ina/cam1 are taken for one individual, 'cam1'" in caplog.text
    caplog.clear()
    name_individuals(["rex/cam1/1.png", "rex/cam1/2.png", "rex/cam2/1.png"])
    name_individuals(["rex/cam1/1.png", "ina/cam1/1.png"], "pattern:^[a-z]+")
    assert not caplog.text


def test_one_video_is_split_by_time_and_told_what_that_says(caplog):
    files = [f"clip/img{k}.png" for k in (10, 9, 1, 2)]
    data = PoseData(np.zeros((4, 8, 8, 3), np.uint8), np.ones((4, 1, 2)), ["nose"], ["clip"] * 4, files=files)
    with caplog.at_level(logging.WARNING):
        split = split_time(data, 0.5)
    assert [data.files[rows].tolist() for rows in (split.train, split.within)] == [files[2:], files[:2]]
    assert "nothing of other animals, cameras or days" in caplog.text


def test_a_missing_part_and_a_missing_image_are_named(tmp_path):
    for name, parts in (("a", ("nose", "tail")), ("b", ("nose",))):
        (tmp_path / "labeled-data" / name).mkdir(parents=True)
        table = KeypointTable(np.ones((1, len(parts), 2)), parts, np.array([f"labeled-data/{name}/1.png"]), "me")
        table.write(tmp_path / "labeled-data" / name / "CollectedData_me.csv")
    with pytest.raises(HapteraError, match=r"b/CollectedData_me.csv has other parts than .*: 'tail' is not in .*/b/"):
        open_pose(tmp_path)
    with pytest.raises(HapteraError, match=r"unknown scorer in .* 'mee'; did you mean 'me'"):
        open_pose(tmp_path / "labeled-data/a", scorer="mee")
    with pytest.raises(HapteraError, match=r"labeled-data/a/1.png of .* was not found"):
        open_pose(tmp_path / "labeled-data/a")


@pytest.mark.parametrize("root", ["C:\\Users\\ann\\rats", "/home/ann/rats"])
def test_absolute_paths_of_another_machine_are_found_in_the_project_as_it_is_now(tmp_path, root):
    mark = "\\" if "\\" in root else "/"
    for video, shade in (("a", 40), ("b", 200)):
        folder = tmp_path / "labeled-data" / video
        folder.mkdir(parents=True)
        Image.new("RGB", (8, 8), (shade, 0, 0)).save(folder / "1.png")
        files = np.array([mark.join((root, "labeled-data", video, "1.png"))])
        KeypointTable(np.ones((1, 1, 2)), ("nose",), files, "me").write(folder / "CollectedData_me.csv")
    data = open_pose(tmp_path)
    assert data.individuals.tolist() == ["a", "b"]
    assert (data.images(np.arange(2))[:, 0, 0, 0] * 255).round().tolist() == [40, 200]
    given = open_pose(tmp_path / "labeled-data/b/CollectedData_me.csv", tmp_path / "labeled-data")
    assert float(given.images(np.arange(1))[0, 0, 0, 0] * 255) == pytest.approx(200)
