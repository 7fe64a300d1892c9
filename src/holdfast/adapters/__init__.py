"""Adapters: models that change with the data they see, without labels."""

from holdfast.adapters.augment import Augment
from holdfast.adapters.base import Adapter, NoAdaptation, adapt
from holdfast.adapters.batchnorm import BatchNorm
from holdfast.adapters.cotta import CoTTA
from holdfast.adapters.cpl import CPL
from holdfast.adapters.dino import DINO
from holdfast.adapters.eta import EATA, ETA
from holdfast.adapters.lame import LAME
from holdfast.adapters.learner import Learner, Learning
from holdfast.adapters.memo import MEMO
from holdfast.adapters.passes import check_logits
from holdfast.adapters.pseudo import RPL, PseudoLabels, Taught
from holdfast.adapters.reset import At, Collapsed, Every, PeriodicReset, RDumb, Reset, ResetWhen
from holdfast.adapters.rotta import RoTTA
from holdfast.adapters.sar import SAR
from holdfast.adapters.select import Select
from holdfast.adapters.sharing import share
from holdfast.adapters.slr import SLR
from holdfast.adapters.teacher import MeanTeacher
from holdfast.adapters.tent import Tent
from holdfast.adapters.watch import Watch
from holdfast.adapters.wrapper import Offline

__all__ = [
    "CPL",
    "DINO",
    "EATA",
    "ETA",
    "LAME",
    "MEMO",
    "RPL",
    "SAR",
    "SLR",
    "Adapter",
    "At",
    "Augment",
    "BatchNorm",
    "CoTTA",
    "Collapsed",
    "Every",
    "Learner",
    "Learning",
    "MeanTeacher",
    "NoAdaptation",
    "Offline",
    "PeriodicReset",
    "PseudoLabels",
    "RDumb",
    "Reset",
    "ResetWhen",
    "RoTTA",
    "Select",
    "Taught",
    "Tent",
    "Watch",
    "adapt",
    "check_logits",
    "share",
]
