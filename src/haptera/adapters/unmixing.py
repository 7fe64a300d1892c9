"""Un-mixing TNS: several statistics for every BatchNorm layer, mixed for each image; for correlated or mixed streams.

Source: Tomar et al. 2024 (UnMix-TNS). A layer has K components (µ_k, σ_k²). An image with mean m and variance s² over
its positions belongs to component k with p_k = softmax(cos(m, µ_k) / τ). It is normalised by the mixture of all
components, each of them moved towards the image: µ̂_k = (1 − p_k) µ_k + p_k m, σ̂_k² likewise; the mean is that of the
µ̂_k, the variance that of the σ̂_k² plus the variance of the µ̂_k. Then µ_k moves by λ times the mean of p_k (m − µ_k)
over the batch, σ_k² likewise. Components begin around the training statistics: µ + √(α K / (K−1)) σ ε and (1 − α) σ²,
ε normal.
The public code decides: τ = .07, α = .5, and none of it for K = 1; λ is .1 for 64 images and 1 − .9^(n/64) for n; a
layer whose inputs have one value per channel keeps the statistics of training.
With K = 1 an image has p = 1: it is normalised by itself alone, as in InstanceNorm, and the component is the plain
moving average of the images' moments.
Differs: λ is a setting, not the `momentum` of each layer, .1 by default in torch. A released model has the mean and
variance of the mixture of all components.
`UnMixing(Tent)` puts the components under an adapter that learns; every pass of it moves them, as in the public code.
Cost: a forward pass, two more passes over each layer's input, and K vectors of means and of variances per layer.
"""

import inspect
from collections.abc import Callable
from functools import partial
from math import sqrt
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.modules.batchnorm import _BatchNorm

from haptera.adapters.base import Adapter
from haptera.adapters.blend import Blend
from haptera.adapters.generator import generator_of
from haptera.adapters.instance import normalise_each
from haptera.adapters.learner import Learner
from haptera.adapters.norm import blending, blends_of, put_blends
from haptera.adapters.passes import run
from haptera.adapters.wrapper import Wrapper
from haptera.checks import check_number, check_whole_number
from haptera.errors import NotApplicable


class UnMixingTNS(Adapter):
    """Un-mixing test-time normalisation statistics.

    Args:
        model: a model with BatchNorm layers.
        components: K; the paper has 16, and 128 for streams that mix domains.
        share: λ, how far components move in `images` images.
        images: see `share`; the public code has 16 for ImageNet, in batches of 16.
        temperature: τ of the assignment of images to components.
        spread: α, the share of the variance that is between components at first.
        settings: `seed`, of the first components; `window` and `frozen`, as every adapter has them.
    """

    def __init__(
        self,
        model: nn.Module,
        components: int = 16,
        share: float = 0.1,
        images: int = 64,
        temperature: float = 0.07,
        spread: float = 0.5,
        **settings: Any,
    ) -> None:
        for name, number in (("components", components), ("images", images)):
            check_whole_number(name, number)
        check_number("share", share, least=0, most=1)
        check_number("temperature", temperature, above=0)
        check_number("spread", spread, least=0, most=1, what="a share")
        super().__init__(model, **settings)
        generator = generator_of(self.seed)
        self.layers = put_blends(
            self.model, lambda layer: Mixture(layer, components, spread, temperature, (share, images), generator)
        )
        if not self.layers:
            raise NotApplicable("there is no BatchNorm layer with statistics in the model")

    def step(self, inputs: torch.Tensor) -> torch.Tensor:
        """Predict, and move the components."""
        return self._run(inputs, "batch")

    def predict(self, inputs: torch.Tensor) -> torch.Tensor:
        """Predict with the components as they are; an image has the same statistics in any batch."""
        return self._run(inputs, "last")

    @torch.no_grad()
    def _run(self, inputs: torch.Tensor, use: str) -> torch.Tensor:
        with blending(self.model, use):
            return run(self.model, inputs)


class MixtureAdapter(Wrapper):
    """An adapter whose BatchNorm layers, its teacher's too, have several statistics in the place of a blend.

    Args:
        model: a model with BatchNorm layers.
        method: an adapter class, or a partial of one.
        unmixing: K, the number of components; all else as `UnMixingTNS` has it by default.
        settings: of the method; its `prior` makes no difference.
    """

    def __init__(self, model: nn.Module, method: Callable[..., Adapter], unmixing: int = 16, **settings: Any) -> None:
        check_whole_number("unmixing", unmixing, what="a number of components")
        inner = method(model, **settings)
        layers: list[Adapter] = [inner]
        while isinstance(layers[-1], Wrapper):
            layers.append(layers[-1].inner)
        learner = layers[-1]
        if not isinstance(learner, Learner) or not learner.norms:
            raise NotApplicable(
                f"components take the place of the BatchNorm statistics of an adapter that learns; "
                f"{type(learner).__name__} has none in this model"
            )
        for network in learner.children():
            generator = generator_of(inner.seed)
            put_blends(network, lambda layer, g=generator: Mixture(layer, unmixing, 0.5, 0.07, (0.1, 64), g))  # type: ignore[misc]
        learner.norms = list(blends_of(learner.model))
        for adapter in reversed(layers):
            adapter._remember()
        super().__init__(inner)
        self.method, self.unmixing, self._given = method, unmixing, settings

    def parent(self, model: nn.Module) -> Adapter:
        """This at a learning rate of 0, which moves the components."""
        still = {"lr": 0.0} if "lr" in inspect.signature(self.method).parameters else {}
        return MixtureAdapter(model, self.method, self.unmixing, **self._given | still)

    def predictor(self) -> Adapter:
        """The parent around the weights that were learnt."""
        return self.parent(self.release(source_statistics=True))

    @property
    def parent_label(self) -> str:
        """What a study calls the components alone."""
        return f"unmixing_tns:components={self.unmixing}"


def UnMixing(method: Callable[..., Adapter], components: int = 16) -> Callable[..., Adapter]:  # noqa: N802
    """A method on several statistics per layer, such as `UnMixing(Tent)`; what comes back takes a model."""
    return partial(MixtureAdapter, method=method, unmixing=components)


class Mixture(Blend):
    """The components of one layer; `mean` and `var` are those of their mixture.

    Args:
        layer: a BatchNorm layer.
        components: K.
        spread: α.
        temperature: τ.
        pace: λ, and for how many images.
        generator: of the first components.
    """

    means: torch.Tensor
    vars: torch.Tensor

    def __init__(
        self,
        layer: _BatchNorm,
        components: int,
        spread: float,
        temperature: float,
        pace: tuple[float, int],
        generator: torch.Generator,
    ) -> None:
        super().__init__(layer, prior=0.0)
        self.temperature, self.pace = temperature, pace
        means, variances = self.mean.repeat(components, 1), self.var.repeat(components, 1)
        if components > 1:
            noise = torch.randn(means.shape, generator=generator).to(means)
            means = means + sqrt(spread * components / (components - 1)) * variances.sqrt() * noise
            variances = (1 - spread) * variances
        self.register_buffer("means", means)
        self.register_buffer("vars", variances)
        self._sum_up()

    def normalise(
        self,
        inputs: torch.Tensor,
        weight: torch.Tensor | None,
        bias: torch.Tensor | None,
        eps: float,
        use: str,
        earlier: int = 0,
    ) -> torch.Tensor:
        """Normalise each image by its mixture; unless `use` is `last`, the components move."""
        if inputs.ndim < 3 or inputs[0, 0].numel() == 1:
            return F.batch_norm(inputs, self.source_mean, self.source_var, weight, bias, False, 0.0, eps)
        return normalise_each(inputs, weight, bias, eps, self.mean.dtype, partial(self._statistics, use=use))

    def _statistics(self, mean: torch.Tensor, var: torch.Tensor, use: str) -> tuple[torch.Tensor, torch.Tensor]:
        """Those of images with these moments."""
        with torch.no_grad():
            cosine = F.normalize(mean, dim=1) @ F.normalize(self.means, dim=1).T
            p = (cosine / self.temperature).softmax(1)
        mixed = self.mix(p, mean, var)
        if use != "last":
            self._move(p, mean.detach(), var.detach())
        return mixed

    def mix(self, p: torch.Tensor, mean: torch.Tensor, var: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Statistics `(batch, channels)` of images with these moments and p `(batch, components)`."""
        k, q = len(self.means), 1 - p
        middle = self.means.mean(0)  # everything relative to it, since squares of large numbers do not subtract well
        means, own = self.means - middle, mean - middle
        mixed = (q @ means + own) / k
        squares = q.square() @ means.square() + 2 * own * ((p * q) @ means) + own.square() * p.square().sum(1)[:, None]
        within = q @ self.vars + var
        return middle + mixed, ((within + squares) / k - mixed.square()).clamp_min(0)

    @torch.no_grad()
    def _move(self, p: torch.Tensor, mean: torch.Tensor, var: torch.Tensor) -> None:
        share, images = self.pace
        step = (1 - (1 - share) ** (len(p) / images)) / len(p)
        for components, own in ((self.means, mean), (self.vars, var)):
            components += step * (p.T @ own - p.sum(0)[:, None] * components)
        self._sum_up()

    def _sum_up(self) -> None:
        self.mean.copy_(self.means.mean(0))
        self.var.copy_(self.vars.mean(0) + self.means.var(0, correction=0))
