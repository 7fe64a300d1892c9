"""Attribute: which inputs of an encoder carry which of its latents, as a map and with a test."""

from holdfast.attribute.attribution import METHODS, Attribution, attribute, attribution_map
from holdfast.attribute.carriers import Carriers, carriers
from holdfast.attribute.jacobian import jacobians, pseudo_inverse
from holdfast.attribute.scores import MapScores, map_scores

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
