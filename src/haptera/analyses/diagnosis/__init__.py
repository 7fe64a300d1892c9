"""Diagnosis: whether unlabelled data has shifted, where in the network, and what it will cost."""

from dataclasses import dataclass


@dataclass(frozen=True)
class DiagnosisSettings:
    """How closely to look.

    Attributes:
        samples: images of each, at most.
        known_samples: images of the reference that each known corruption is tried on, at most; 0 leaves these out.
        batch_size: images per forward pass.
        covariance: distances with whole covariance matrices as well.
        adapted: also find what BatchNorm adaptation leaves of the errors of known corruptions, and what it costs on
            clean images (table A.6); takes three times as long.
        choose_on: known corruptions that choose how estimates of accuracy are combined: all, each tried with what the
            others choose; or holdout, the four hold-out ones alone, for data that is itself one of the others.
        seed: of the choice of images and of the corruptions.
    """

    samples: int = 1000
    known_samples: int = 256
    batch_size: int = 64
    covariance: bool = False
    adapted: bool = False
    choose_on: str = "all"
    seed: int = 0
