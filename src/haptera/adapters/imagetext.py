"""What adapters of image-text models ask of a model, and the views of an image of which they keep the surest.

Any module will do that has `texts` and `score`, as `haptera.models.ZeroShot` has: `texts.context(template)` gives the
vectors of a prompt, `texts.encode(template, context)` the features of the classes for other vectors, with gradients,
and `score(seen, features)` the logits of image features. Features of images are what reaches its last layer.
"""

from typing import Any

import torch
from torch import nn

from haptera.adapters.published import AugMix, Views
from haptera.checks import check_number, check_whole_number
from haptera.errors import NotApplicable
from haptera.losses.self_learning import entropy

CROPS = AugMix(operations=())
"""Random crops and mirror images, which public code takes for all but fine-grained data."""


def find_image_text(model: nn.Module, method: str) -> Any:
    """The module inside a model that compares features of images with those of texts."""
    holder = next((each for each in model.modules() if hasattr(each, "texts") and hasattr(each, "score")), None)
    if holder is None:
        raise NotApplicable(
            f"{method} learns a prompt, and {type(model).__name__} has no part that reads texts; an image-text model "
            "was expected, such as haptera.models.ZeroShot or --model zeroshot:openai/clip-vit-base-patch16:classes=..."
        )
    return holder


def check_views(views: int, share: float) -> None:
    """Refuse settings that leave no view."""
    check_whole_number("views", views, what="a number of views")
    check_number("share", share, above=0, most=1, what="a share of the views")


def views_of(image: torch.Tensor, n: int, augment: Views, random: torch.Generator) -> torch.Tensor:
    """An image `(1, ...)` as it is, and n − 1 random views of it."""
    if n == 1:
        return image
    return torch.cat([image, augment(image.expand(n - 1, *image.shape[1:]), random)])


def surest_views(logits: torch.Tensor, share: float) -> torch.Tensor:
    """Positions of this share of the views `(views, classes)`, rounded down, of the lowest entropy; at least one."""
    return entropy(logits).argsort(stable=True)[: max(1, int(len(logits) * share))]
