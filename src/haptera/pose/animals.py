"""Prediction of several animals in a frame: a network for one animal looks at a crop around each.

Where the animals are, a table says: labels, or what a tracker of DeepLabCut or SLEAP found. The result is a table in
DeepLabCut's layout for several animals, in pixels of the frames. Cost: that of the network, for each animal.
"""

from pathlib import Path

from haptera.errors import HapteraError
from haptera.files.keypoints import KeypointTable, check_target
from haptera.pose.labels import read_labels
from haptera.pose.network import PoseNetwork
from haptera.pose.predict import predict


def predict_animals(
    network: PoseNetwork,
    around: Path,
    out: Path,
    scorer: str = "haptera",
    *,
    images: Path | None = None,
    size: tuple[int, int] | None = None,
    batch_size: int = 32,
    progress: bool | None = False,
) -> KeypointTable:
    """Write the keypoints of every animal as a table, and return it.

    Args:
        network: what predicts, from a crop of one animal.
        around: where animals are: what `read_labels` reads, with several animals in a frame.
        out: a `.csv` or `.h5`, with the levels scorer, individuals, bodyparts and coords.
        scorer: who the table says predicted.
        images: the folder that paths of images begin at.
        size: height and width to which crops are brought; as the network says if left out.
        batch_size: crops in a pass.
        progress: None shows it where somebody is looking.
    """
    check_target(out)
    labels = read_labels(around, animals="all" if around.suffix == ".json" else None)
    if labels.table.animals is None:
        raise HapteraError(f"{around} is of one animal in a frame; a table of several was expected")
    data = labels.frames(images, network.size if size is None else size, around.name)
    found = predict(network, data, batch_size=batch_size, progress=progress)
    keypoints = data.in_source(found.keypoints.astype(float))
    table = KeypointTable(keypoints, network.parts, data.files, scorer, found.confidence.astype(float), data.animals)
    table.write(out)
    return table
