"""Everything that reads images from disk: `open_data` looks at what it is given and returns `Data`.

One array file, a folder of images, a folder of class folders, or a data set that is corrupted already.
"""

from haptera.data.arrays import ArrayData, NpzData
from haptera.data.base import Classes, CorruptedImages, CorruptedPart, Data, sample_fingerprint
from haptera.data.corrupted import NpyData
from haptera.data.folder import FolderData
from haptera.data.items import ItemData
from haptera.data.mapping import MappedData, read_mapping, with_mapping
from haptera.data.opening import digits, map_labelled, open_data

__all__ = [
    "ArrayData",
    "Classes",
    "CorruptedImages",
    "CorruptedPart",
    "Data",
    "FolderData",
    "ItemData",
    "MappedData",
    "NpyData",
    "NpzData",
    "digits",
    "map_labelled",
    "open_data",
    "read_mapping",
    "sample_fingerprint",
    "with_mapping",
]
