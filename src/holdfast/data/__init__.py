"""Everything that reads images from disk: `open_data` looks at what it is given and returns `Data`.

One array file, a folder of images, a folder of class folders, or a data set that is corrupted already.
"""

from holdfast.data.arrays import ArrayData
from holdfast.data.base import Classes, Data
from holdfast.data.bundled import digits
from holdfast.data.cifar_c import NpyData
from holdfast.data.corrupted import CorruptedImages, CorruptedPart
from holdfast.data.folder import FolderData
from holdfast.data.mapping import MappedData, read_mapping, with_mapping
from holdfast.data.npz import NpzData
from holdfast.data.opening import map_labelled, open_data

__all__ = [
    "ArrayData",
    "Classes",
    "CorruptedImages",
    "CorruptedPart",
    "Data",
    "FolderData",
    "MappedData",
    "NpyData",
    "NpzData",
    "digits",
    "map_labelled",
    "open_data",
    "read_mapping",
    "with_mapping",
]
