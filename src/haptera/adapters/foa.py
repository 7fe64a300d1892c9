"""FOA: learn a prompt from forward passes alone, by an evolution strategy; for models that give no gradients.

Source: Niu et al. 2024, (5) to (9). Every batch is a generation of CMA-ES: each sample is a prompt, and the fittest, or
the fittest so far where that is fitter, predicts. The fitness is the entropy of the predictions plus λ times how far
means and standard deviations of the activations are from those of the source, layer by layer; then the features that
reach the last layer are shifted by the way from a running mean over the stream back to the mean of the source.
The public code decides: 3 tokens, samples of standard deviation 1 around 0 and 4 + 3 ln d of them; activations of the
class token behind the first normalisation of each block but the first, and before the last layer; λ .4 for 64 images,
in proportion for others; the shift comes from earlier batches, and a tenth of the running mean from each batch.
Differs: activations and shifts need images of the source, `source`, of which the paper has 32. Without them entropy
alone would be least where all images get one class, so the entropy of the mean prediction is subtracted, and nothing is
shifted. A model without a class token has the mean over its tokens. A model without blocks of attention, which the
paper does not have, gets a prompt in its images (`prompts.py`), and its activations are the features before the last
layer; λ is for the 9,216 activations of a ViT-B, in proportion for others, as in a public version for ResNets. Where
layers cannot be seen (ONNX, TorchScript, a function), logits stand in for the features. The strategy is not told about
the fittest so far, as it is in the public code, and the first prompt is 0.
Cost: 5 + 3 ln d forward passes and no backward pass: 28 for a ViT-B, 15 for a prompt in images of three channels.
"""

import logging
from collections.abc import Iterable
from contextlib import ExitStack
from typing import Any

import torch
from torch import nn

from haptera.adapters.base import Adapter
from haptera.adapters.evolution import begin_search, draw, learn, place, usual_population
from haptera.adapters.head import find_head
from haptera.adapters.passes import check_logits, run, watch_layers
from haptera.adapters.prompts import ImagePrompt, TokenPrompt, first_norm
from haptera.batch import Batch
from haptera.checks import check_number, check_whole_number
from haptera.errors import HapteraError, NotApplicable, check_keys
from haptera.losses.self_learning import entropy, information_maximisation

log = logging.getLogger("haptera")

PROMPTS = ("auto", "tokens", "image")
CLASS_TOKENS = ("cls_token", "class_token", "class_embedding")
"""How networks call the parameter that is their class token."""
USUAL_BATCH, USUAL_ACTIVATIONS = 64, 12 * 768
"""The batch, and the activations of a ViT-B, for which λ is given."""
HISTORY = 0.9
"""The share of earlier batches in the running mean of features."""


class FOA(Adapter):
    """Forward-only adaptation.

    Args:
        model: any; one whose layers cannot be seen takes images.
        source: images of the source, a few dozen: a list of tensors `(batch, ...)` or batches, of which labels are not
            read; by default there is none.
        weight: λ, of the distance to the source.
        prompt: `tokens` in a network with attention, `image`, or `auto`, tokens where that is possible.
        tokens: how many of them.
        population: samples for each batch; by default 4 + 3 ln d for a prompt of d numbers.
        sigma: the standard deviation of the first samples; by default 1 for tokens and .1 for images.
        settings: `seed`, `window` and `frozen`, as every adapter has them.
    """

    outputs_only = True

    def __init__(
        self,
        model: nn.Module,
        source: Iterable[Any] | None = None,
        weight: float = 0.4,
        prompt: str = "auto",
        tokens: int = 3,
        population: int | None = None,
        sigma: float | None = None,
        **settings: Any,
    ) -> None:
        check_keys("prompt", [prompt], PROMPTS)
        check_number("weight", weight, least=0)
        check_whole_number("tokens", tokens)
        if population is not None:
            check_whole_number("population", population, 4)
        if sigma is not None:
            check_number("sigma", sigma, above=0)
        super().__init__(model, **settings)
        self.weight, self.tokens, self.population, self.sigma = weight, tokens, population, sigma
        self._kind = prompt
        self._head: str | None = None
        self._prompt: TokenPrompt | ImagePrompt | None = None
        self._norms: tuple[str, ...] = ()
        self._class_token = any(name.rpartition(".")[2] in CLASS_TOKENS for name, _ in self.model.named_parameters())
        self.memory |= {"search": None, "best": None, "history": None}
        self._moments: tuple[torch.Tensor, torch.Tensor] | None = None
        if source is not None:
            self._moments = self._read(source)

    @torch.no_grad()
    def step(self, inputs: torch.Tensor) -> torch.Tensor:
        """Try a generation of prompts, and predict with the fittest."""
        prompt, memory = self._prepare(inputs), self.memory
        if memory["search"] is None:
            memory["best"] = torch.zeros(prompt.size, dtype=torch.float64)
            memory["search"] = begin_search(memory["best"], self.sigma or prompt.sigma)
        drawn = draw(memory["search"], self.population or usual_population(prompt.size), self.random)
        outputs, fits, means = torch.zeros(0), [], []
        for vector in (*place(memory["search"], drawn), memory["best"]):
            logits, seen, activations = self._look(inputs, vector)
            fits.append(self._fitness(logits, activations))
            means.append(seen.float().mean(0))
            if fits[-1] <= min(fits):
                outputs, memory["best"] = self._shift(logits, seen), vector
        memory["search"] = learn(memory["search"], drawn, fits[:-1])
        self._move(torch.stack(means).mean(0))
        self.record |= {"loss": min(fits), "sigma": memory["search"]["sigma"]}
        return outputs

    @torch.no_grad()
    def predict(self, inputs: torch.Tensor) -> torch.Tensor:
        """Predict with the fittest prompt so far; before the first step, as the model does."""
        if self.memory["best"] is None or not len(inputs):
            return run(self.model, inputs)
        self._prepare(inputs)
        logits, seen, _ = self._look(inputs, self.memory["best"])
        return self._shift(logits, seen)

    def _prepare(self, inputs: torch.Tensor) -> TokenPrompt | ImagePrompt:
        """Decide, on the first batch, where the prompt goes and which activations are read."""
        if self._prompt is not None:
            return self._prompt
        before = [(buffer, buffer.clone()) for buffer in self.buffers()]
        tokens = None if self._kind == "image" else TokenPrompt.fit(self.model, inputs, self.tokens)
        if tokens is None and self._kind == "tokens":
            raise NotApplicable("prompt is 'tokens', and the model has no blocks of attention that take further tokens")
        self._head = find_head(self.model, inputs[:1])
        if tokens is not None:
            names = tokens.blocks[1:]
            self._norms = tuple(f"{name}.{first_norm(self.model.get_submodule(name))}" for name in names)
        prompt = self._prompt = tokens or ImagePrompt.fit(inputs)
        for buffer, value in before:  # a trial that a later step does not see
            buffer.copy_(value)
        log.info(
            "foa: a prompt of %d numbers in the %s; activations are %s",
            prompt.size,
            "tokens" if tokens else "images",
            f"those of {len(self._norms)} blocks and {'the logits' if self._head is None else 'the features'}",
        )
        return prompt

    def _look(
        self, inputs: torch.Tensor, vector: torch.Tensor | None
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Logits, features `(batch, d)`, and the activations of all layers side by side, with a prompt or without."""
        found: list[torch.Tensor] = []
        seen: list[torch.Tensor] = []
        layers = {name: self.model.get_submodule(name) for name in self._norms}
        with ExitStack() as stack:
            if vector is not None:
                prompt = self._prepare(inputs)
                inputs = self._arrange(prompt.apply(inputs, vector))
                stack.enter_context(prompt.put(self.model, vector))
            tokens = self.tokens if vector is not None else 0
            stack.enter_context(watch_layers(layers, lambda _, values: found.append(self._token(values, tokens))))
            if self._head is not None:
                head = {self._head: self.model.get_submodule(self._head)}
                stack.enter_context(watch_layers(head, lambda _, values: seen.append(values), (nn.Module,)))
            logits = check_logits(run(self.model, inputs), type(self).__name__)
        last = seen[-1] if seen else logits
        return logits, last, torch.cat([*found, last.float()], 1)

    def _token(self, values: torch.Tensor, prompts: int) -> torch.Tensor:
        """The class token, or the mean over the tokens of the image, `(batch, width)`."""
        values = values.float()
        return values[:, 0] if self._class_token else values[:, : values.shape[1] - prompts].mean(1)

    def _fitness(self, logits: torch.Tensor, activations: torch.Tensor) -> float:
        """(5) for this batch, or information maximisation without a source; infinite where it is not a number."""
        n = len(logits)
        if self._moments is None:
            value = n * information_maximisation(logits)
        else:
            mean, std = (each.to(activations) for each in self._moments)
            away = (activations.mean(0) - mean).square().sum()
            if n > 1:
                away = away + (activations.std(0) - std).square().sum()
            usual = n / USUAL_BATCH * USUAL_ACTIVATIONS / len(mean)
            value = entropy(logits).sum() + self.weight * usual * away
        return float(value.nan_to_num(float("inf"), float("inf")))

    def _shift(self, logits: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
        """Logits of features that are moved back to the source, (7) and (8)."""
        if self._moments is None or self.memory["history"] is None:
            return logits
        away = self._moments[0][-seen.shape[1] :].to(seen) - self.memory["history"].to(seen)
        moved = seen + away
        return (moved if self._head is None else self.model.get_submodule(self._head)(moved)).to(logits)

    def _move(self, mean: torch.Tensor) -> None:
        """The running mean of the features, (9)."""
        before = self.memory["history"]
        if bool(torch.isfinite(mean).all()):
            self.memory["history"] = mean if before is None else HISTORY * before.to(mean) + (1 - HISTORY) * mean

    @torch.no_grad()
    def _read(self, source: Iterable[Any]) -> tuple[torch.Tensor, torch.Tensor]:
        """Mean and standard deviation of the activations on images of the source, without a prompt."""
        found = []
        for batch in source:
            inputs = batch.inputs if isinstance(batch, Batch) else batch[0] if isinstance(batch, tuple) else batch
            if not isinstance(inputs, torch.Tensor) or not len(inputs):
                raise HapteraError(f"source holds a {type(inputs).__name__}; batches of images were expected")
            inputs = self._arrange(inputs)
            self._prepare(inputs)
            found.append(self._look(inputs, None)[2])
        together = torch.cat(found) if found else torch.zeros(0, 1)
        if len(together) < 2 or not bool(torch.isfinite(together).all()):
            raise HapteraError(
                f"source holds {len(together)} images; at least two, with finite activations, were expected"
            )
        return together.mean(0), together.std(0)
