"""Adapters: models that change with the data they see, without labels."""

from haptera.adapters.adacontrast import AdaContrast
from haptera.adapters.asr import ASR, AdaptiveReset, SelectiveReset
from haptera.adapters.augment import Augment
from haptera.adapters.base import Adapter, NoAdaptation, adapt
from haptera.adapters.batchnorm import BatchNorm
from haptera.adapters.cmf import CMF, MomentumFilter
from haptera.adapters.cotta import CoTTA
from haptera.adapters.cpl import CPL
from haptera.adapters.deyo import DeYO
from haptera.adapters.dino import DINO
from haptera.adapters.ensemble import Ensemble, WeightEnsemble
from haptera.adapters.eta import EATA, ETA
from haptera.adapters.foa import FOA
from haptera.adapters.gtta import GTTA
from haptera.adapters.lame import LAME
from haptera.adapters.learner import Learner
from haptera.adapters.learning import Learning
from haptera.adapters.memo import MEMO
from haptera.adapters.note import NOTE
from haptera.adapters.passes import check_logits
from haptera.adapters.petta import PeTTA
from haptera.adapters.piece import Piece
from haptera.adapters.presets import Preset, presets, with_preset
from haptera.adapters.prior_correction import BatchPrior, PriorCorrection
from haptera.adapters.pseudo import RPL, PseudoLabels, Pupil
from haptera.adapters.reset import At, Collapsed, Every, PeriodicReset, RDumb, Reset, ResetWhen
from haptera.adapters.rmt import RMT
from haptera.adapters.roid import ROID
from haptera.adapters.rotta import RoTTA
from haptera.adapters.santa import SANTA
from haptera.adapters.sar import SAR
from haptera.adapters.select import Select
from haptera.adapters.sharing import share
from haptera.adapters.shot import SHOT
from haptera.adapters.slr import SLR
from haptera.adapters.t3a import T3A
from haptera.adapters.teacher import MeanTeacher
from haptera.adapters.tent import Tent
from haptera.adapters.time_limit import TimeLimit
from haptera.adapters.tpt import TPT
from haptera.adapters.ttaug import TTAug
from haptera.adapters.unmixing import MixtureAdapter, UnMixing, UnMixingTNS
from haptera.adapters.vte import VTE
from haptera.adapters.watch import Watch
from haptera.adapters.weighted_slr import WeightedSLR
from haptera.adapters.wrapper import Offline

__all__ = [
    "ASR",
    "CMF",
    "CPL",
    "DINO",
    "EATA",
    "ETA",
    "FOA",
    "GTTA",
    "LAME",
    "MEMO",
    "NOTE",
    "RMT",
    "ROID",
    "RPL",
    "SANTA",
    "SAR",
    "SHOT",
    "SLR",
    "T3A",
    "TPT",
    "VTE",
    "AdaContrast",
    "Adapter",
    "AdaptiveReset",
    "At",
    "Augment",
    "BatchNorm",
    "BatchPrior",
    "CoTTA",
    "Collapsed",
    "DeYO",
    "Ensemble",
    "Every",
    "Learner",
    "Learning",
    "MeanTeacher",
    "MixtureAdapter",
    "MomentumFilter",
    "NoAdaptation",
    "Offline",
    "PeTTA",
    "PeriodicReset",
    "Piece",
    "Preset",
    "PriorCorrection",
    "PseudoLabels",
    "Pupil",
    "RDumb",
    "Reset",
    "ResetWhen",
    "RoTTA",
    "Select",
    "SelectiveReset",
    "TTAug",
    "Tent",
    "TimeLimit",
    "UnMixing",
    "UnMixingTNS",
    "Watch",
    "WeightEnsemble",
    "WeightedSLR",
    "adapt",
    "check_logits",
    "presets",
    "share",
    "with_preset",
]
