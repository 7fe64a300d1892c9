"""Adapters: models that change with the data they see, without labels."""

from haptera.adapters.augment import Augment
from haptera.adapters.base import Adapter, NoAdaptation, adapt
from haptera.adapters.batchnorm import BatchNorm
from haptera.adapters.cotta import CoTTA
from haptera.adapters.cpl import CPL
from haptera.adapters.dino import DINO
from haptera.adapters.eta import EATA, ETA
from haptera.adapters.lame import LAME
from haptera.adapters.learner import Learner, Learning
from haptera.adapters.memo import MEMO
from haptera.adapters.passes import check_logits
from haptera.adapters.pseudo import RPL, PseudoLabels, Taught
from haptera.adapters.reset import At, Collapsed, Every, PeriodicReset, RDumb, Reset, ResetWhen
from haptera.adapters.rotta import RoTTA
from haptera.adapters.sar import SAR
from haptera.adapters.select import Select
from haptera.adapters.sharing import share
from haptera.adapters.slr import SLR
from haptera.adapters.teacher import MeanTeacher
from haptera.adapters.tent import Tent
from haptera.adapters.watch import Watch
from haptera.adapters.wrapper import Offline

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
