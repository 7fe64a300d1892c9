"""Attribute: which inputs of an encoder carry which of its latents, as a map and with a test."""

from haptera.analyses.attribution.attribution import METHODS, Attribution, attribute, attribution_map
from haptera.analyses.attribution.carriers import Carriers, carriers
from haptera.analyses.attribution.methods import jacobians, pseudo_inverse
from haptera.analyses.attribution.scores import MapScores, map_scores

__all__ = [
    "METHODS",
    "Attribution",
    "Carriers",
    "MapScores",
    "attribute",
    "attribution_map",
    "carriers",
    "jacobians",
    "map_scores",
    "pseudo_inverse",
]
