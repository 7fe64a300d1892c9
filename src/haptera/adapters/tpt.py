"""TPT: for every image alone, tune the words of the prompt until its surest views agree, predict, and forget.

Source: Shu et al. 2022, for image-text models: the vectors of the words before the name of a class take a step on the
entropy of the mean prediction over the tenth of the views that are surest; then the image itself is predicted.
The public code decides: the image and 63 random crops and mirror images of it; the prompt starts as "a photo of a"; one
step of AdamW with a weight decay of .01; which views are sure is decided once, before the first step. Predictions are
those of one prompt, also where the model itself has several templates.
Differs: gradients are not scaled, as the public code does for half precision: the vectors are single precision here.
Cost: per image, a forward pass of its views, two of the texts of all classes, and a backward pass of these.
"""

from typing import Any

import torch
from torch import nn

from haptera.adapters.base import Adapter, NoAdaptation
from haptera.adapters.head import classify
from haptera.adapters.imagetext import CROPS, check_views, find_image_text, surest_views, views_of
from haptera.adapters.passes import run
from haptera.adapters.published import Views
from haptera.adapters.select import features
from haptera.checks import check_number, check_whole_number
from haptera.losses.self_learning import marginal_entropy


class TPT(Adapter):
    """Test-time prompt tuning.

    Args:
        model: an image-text model with `texts`, such as `haptera.models.ZeroShot`.
        lr: the learning rate.
        views: of an image, itself among them.
        share: of the views, that are learnt from.
        steps: for each image.
        template: the text that begins with the words to tune, with `{}` for the name of the class.
        weight_decay: of AdamW.
        augment: what the views look like.
        settings: `seed`, of the views, and `frozen`, to predict with the words as they are.
    """

    context: torch.Tensor
    prompt: torch.Tensor

    def __init__(
        self,
        model: nn.Module,
        lr: float = 5e-3,
        views: int = 64,
        share: float = 0.1,
        steps: int = 1,
        template: str = "a photo of a {}.",
        weight_decay: float = 0.01,
        augment: Views = CROPS,
        frozen: bool = False,
        seed: int = 0,
    ) -> None:
        check_number("lr", lr, least=0)
        check_number("weight_decay", weight_decay, least=0)
        check_whole_number("steps", steps)
        check_views(views, share)
        super().__init__(model, frozen=frozen, seed=seed)
        texts = find_image_text(self.model, "TPT").texts
        self.lr, self.views, self.share, self.steps, self.template = lr, views, share, steps, template
        self.weight_decay, self.augment = weight_decay, augment
        self.register_buffer("context", texts.context(template).float())
        with torch.no_grad():
            self.register_buffer("prompt", texts.encode(template, self.context))

    def step(self, inputs: torch.Tensor) -> torch.Tensor:
        """Every image on its own."""
        outputs, losses = [], []
        for image in inputs.split(1):
            seen = self._see(self._arrange(views_of(image, self.views, self.augment, self.random)))
            tuned, loss = self._tune(seen)
            with torch.no_grad():
                outputs.append(self._score(seen[:1], tuned))
            losses.append(loss)
        self.record["loss"] = sum(losses) / len(losses)
        return torch.cat(outputs)

    @torch.no_grad()
    def predict(self, inputs: torch.Tensor) -> torch.Tensor:
        """Predict with the words that the prompt starts from."""
        return self._holder().score(self._see(inputs), self.prompt)

    def _tune(self, seen: torch.Tensor) -> tuple[torch.Tensor, float]:
        """The words for an image, from the features `(views, d)` of its views, and the last loss."""
        context = nn.Parameter(self.context.float().clone())
        optimiser = torch.optim.AdamW([context], lr=self.lr, weight_decay=self.weight_decay)
        chosen, loss = None, torch.tensor(0.0)
        for _ in range(self.steps):
            with torch.enable_grad():
                logits = self._score(seen, context)
                chosen = surest_views(logits.detach(), self.share) if chosen is None else chosen
                loss = marginal_entropy(logits[chosen])
            (context.grad,) = torch.autograd.grad(loss, context)
            if not bool(torch.isfinite(context.grad).all()):
                self.record["skipped"] = 1.0
                break
            optimiser.step()
        return context.detach(), float(loss.detach())

    def _score(self, seen: torch.Tensor, context: torch.Tensor) -> torch.Tensor:
        holder = self._holder()
        return holder.score(seen, holder.texts.encode(self.template, context))

    @torch.no_grad()
    def _see(self, images: torch.Tensor) -> torch.Tensor:
        """Features of images, `(batch, d)`."""
        with features(self.model) as seen:
            run(self.model, images)
        return seen[-1].float()

    def _holder(self) -> Any:
        return find_image_text(self.model, "TPT")

    def parent(self, model: nn.Module) -> Adapter:
        """The words as they are: the model itself where these are its texts."""
        if self.parent_label == "none":
            return NoAdaptation(model)
        return TPT(model, 0.0, self.views, self.share, template=self.template, augment=self.augment)

    @property
    def parent_label(self) -> str:
        """`none`, or `tpt:lr=0` where the last layer of the model has other texts than those of this template."""
        every = torch.eye(self.prompt.shape[1], device=self.prompt.device)  # what any features are made of
        ours, own = self._holder().score(every, self.prompt.to(every)), classify(self.model, every)
        return "none" if ours.shape == own.shape and torch.allclose(ours, own, rtol=1e-4, atol=1e-6) else "tpt:lr=0"
