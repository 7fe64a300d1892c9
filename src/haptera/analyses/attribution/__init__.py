"""Attribution: which inputs of an encoder carry which of its latents, as a map and with a test."""

from haptera.analyses.attribution.analysis import Attribution, attribute
from haptera.analyses.attribution.carriers import Carriers, DecoyTest, carriers
from haptera.analyses.attribution.maps import METHODS, SampleAttributions, attribution_map, sample_attributions
from haptera.analyses.attribution.methods import jacobians, pseudo_inverse
from haptera.analyses.attribution.scores import MapScores, map_scores

__all__ = [
    "METHODS",
    "Attribution",
    "Carriers",
    "DecoyTest",
    "MapScores",
    "SampleAttributions",
    "attribute",
    "attribution_map",
    "carriers",
    "jacobians",
    "map_scores",
    "pseudo_inverse",
    "sample_attributions",
]
