"""Arguments of `cebra.CEBRA` (0.6.1): each is taken, changed or refused, with a sentence; and what they become.

Where that package ignores an argument without a word, it is left out here as well, so that the script runs, and a
warning says so.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from haptera.errors import HapteraError

TAKEN, CHANGED, REFUSED = "taken", "changed", "refused"
BEHAVIOUR_DIMENSIONS = 3
"""Dimensions that labels shape in that package's hybrid mode."""
ADAM = (("betas", (0.9, 0.999)), ("eps", 1e-08), ("weight_decay", 0), ("amsgrad", False))
WIDE = {"offset1-model-mse": "offset1-wide-model-mse", "offset1-model-mse-tanh": "offset1-wide-model-mse-tanh"}
"""Names under which that package has another network than haptera."""


@dataclass(frozen=True)
class Argument:
    """What becomes of an argument.

    Attributes:
        name: as there.
        verdict: `taken`, `changed`, or `refused`, which is for all values but the default.
        sentence: for the table of the guide, and for the error if it is refused.
    """

    name: str
    verdict: str
    sentence: str


ARGUMENTS = (
    Argument(
        "model_architecture",
        CHANGED,
        "the names of that package, but those with `clip` and `supervised`; models that subsample give a point for "
        "every sample, and dropout, layers and offsets are as there",
    ),
    Argument("device", TAKEN, "`cuda_if_available`, `cpu`, `cuda`, ..."),
    Argument("criterion", REFUSED, "`infonce` is the only one there is"),
    Argument("distance", TAKEN, "`cosine` or `euclidean`; an architecture with `-mse` needs `euclidean`"),
    Argument(
        "conditional",
        CHANGED,
        "where it would be ignored there without a word (no labels, or discrete ones) a warning says so",
    ),
    Argument("temperature", TAKEN, "by which similarities are divided"),
    Argument("temperature_mode", TAKEN, "`constant` or `auto`"),
    Argument("min_temperature", TAKEN, "used with `auto` only"),
    Argument("time_offsets", CHANGED, "several are allowed as well"),
    Argument("delta", CHANGED, "used with `conditional='delta'` only; a warning says so elsewhere"),
    Argument("max_iterations", TAKEN, "steps of `fit`, and of every `partial_fit`"),
    Argument("max_adapt_iterations", TAKEN, "steps of `fit(..., adapt=True)`"),
    Argument("batch_size", TAKEN, "None is all samples"),
    Argument("learning_rate", TAKEN, "of Adam"),
    Argument("optimizer", REFUSED, "`adam` is the only one there is"),
    Argument("output_dimension", TAKEN, "of the embedding"),
    Argument("verbose", TAKEN, "a bar in a terminal"),
    Argument("num_hidden_units", TAKEN, "not used by `offset1-model-mse`, as there"),
    Argument("pad_before_transform", TAKEN, "a point for every sample"),
    Argument(
        "hybrid",
        CHANGED,
        "labels shape the first three dimensions and time all, as there; works with several sessions and discrete "
        "labels as well; angles within the first three dimensions are of vectors of unit length",
    ),
    Argument("optimizer_kwargs", REFUSED, "Adam has its usual settings; set learning_rate"),
    Argument("masking_kwargs", REFUSED, "no part of the signal is masked in training"),
    Argument("random_state", TAKEN, "not an argument there: makes a fit repeatable"),
)


@dataclass(frozen=True)
class Labels:
    """Which kinds of labels a fit has."""

    continuous: bool = False
    discrete: bool = False


@dataclass(frozen=True)
class Translation:
    """What arguments become.

    Attributes:
        settings: of haptera's estimator.
        use_labels: whether pairs depend on labels.
        notes: what was left out, in words.
    """

    settings: dict[str, Any]
    use_labels: bool
    notes: tuple[str, ...]


def refuse(params: Mapping[str, Any]) -> None:
    """Refuse values that haptera cannot do."""
    given = {str(name): value for name, value in params["optimizer_kwargs"] or ()}
    usual = dict(ADAM)
    odd = {name: value for name, value in given.items() if name not in usual or usual[name] != value}
    sentences = {one.name: one.sentence for one in ARGUMENTS}
    found = {
        "criterion": params["criterion"] != "infonce",
        "optimizer": params["optimizer"] != "adam",
        "optimizer_kwargs": bool(odd),
        "masking_kwargs": bool(params["masking_kwargs"]),
    }
    for name, is_odd in found.items():
        if is_odd:
            value = odd if name == "optimizer_kwargs" else params[name]
            raise HapteraError(f"{name} is {value!r}, which haptera.compat.cebra does not take: {sentences[name]}")
    if params["distance"] not in ("cosine", "euclidean"):
        raise HapteraError(f"distance is {params['distance']!r}; 'cosine' or 'euclidean' was expected")


def translate(params: Mapping[str, Any], labels: Labels) -> Translation:
    """Return settings of `ContrastiveEmbedding` for arguments of `CEBRA` and the kinds of labels."""
    conditional, notes = params["conditional"], []
    any_label, use_labels = labels.continuous or labels.discrete, True
    hybrid = bool(params["hybrid"])
    if hybrid and params["output_dimension"] < BEHAVIOUR_DIMENSIONS:
        raise HapteraError(
            f"hybrid is True and output_dimension {params['output_dimension']}; {BEHAVIOUR_DIMENSIONS} or more was "
            "expected, for labels shape the first three and time all of them"
        )
    if not any_label:
        if conditional not in (None, "time"):
            notes.append(f"conditional is {conditional!r}, and no label was given: pairs are drawn by time")
        conditional = None
    elif conditional == "time" and not hybrid:
        notes.append("conditional is 'time': the label that was given is not used")
        conditional, use_labels = None, False
    elif labels.discrete and conditional is not None:
        notes.append(f"conditional is {conditional!r}, and the label is discrete: pairs are drawn within its classes")
        conditional = None
    gaussian = conditional == "delta"
    if params["delta"] is not None and not gaussian:
        notes.append(f"delta is {params['delta']!r}, and conditional is not 'delta': it is not used")
    by_classes = labels.discrete and not labels.continuous and not hybrid
    offsets = 1 if by_classes or (gaussian and not hybrid) else params["time_offsets"]
    name = params["model_architecture"]
    auto = params["temperature_mode"] == "auto"
    same = ("device", "distance", "temperature", "temperature_mode", "max_iterations", "max_adapt_iterations")
    more = ("batch_size", "learning_rate", "output_dimension", "verbose", "num_hidden_units", "pad_before_transform")
    settings = {each: params[each] for each in (*same, *more, "random_state")}
    return Translation(
        settings
        | {
            "model_architecture": WIDE.get(name, name) if isinstance(name, str) else name,
            "conditional": conditional,
            "delta": params["delta"] if gaussian else None,
            "time_offsets": offsets,
            "min_temperature": params["min_temperature"] if auto else None,
            "hybrid": BEHAVIOUR_DIMENSIONS if hybrid else False,
            # With both kinds of labels that package draws references evenly over the classes.
            "prior": "uniform" if use_labels and labels.continuous and labels.discrete else "empirical",
        },
        use_labels,
        tuple(notes),
    )


def recover(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of `CEBRA` for settings of `ContrastiveEmbedding`, as far as there are such."""
    known = {one.name for one in ARGUMENTS}
    params = {name: value for name, value in settings.items() if name in known}
    if params["min_temperature"] is None and params["temperature_mode"] == "constant":
        del params["min_temperature"]
    back = {wide: name for name, wide in WIDE.items()}
    params["model_architecture"] = back.get(params["model_architecture"], params["model_architecture"])
    if settings["hybrid"] not in (False, BEHAVIOUR_DIMENSIONS):
        raise HapteraError(f"hybrid is {settings['hybrid']!r}, which CEBRA cannot say; use ContrastiveEmbedding.load")
    return params | {"hybrid": bool(settings["hybrid"])}


INSTEAD = {
    "data": "the PyTorch parts of that package are not here; CEBRA takes arrays, and for its helpers "
    "haptera.analyses.embedding.alignment has procrustes and average",
    "models": "haptera.contrastive.architectures has the networks; supported_model_architectures lists their names",
    "solver": "the PyTorch parts of that package are not here; haptera.contrastive.ContrastiveEmbedding takes arrays",
    "distributions": "the samplers are in haptera.contrastive.sampling; CEBRA chooses them by the labels",
    "datasets": "load_data reads your own files, haptera.recordings.synthetic makes sessions with known latents",
    "attribution": "haptera.attribute makes attribution maps",
    "grid_search": "scikit-learn's GridSearchCV takes haptera.contrastive.ContrastiveEmbedding, whose score is the "
    "goodness of fit; compare_models draws several",
    "helper": "nothing is downloaded here; get the file yourself, and read it with load_data",
    "io": "load_data reads files; CEBRA.save and CEBRA.load are for models",
    "registry": "model_architecture may be a module, or a function of (channels, hidden units, dimensions), of "
    "haptera.contrastive.ContrastiveEmbedding",
    "plotly": "plot_embedding_interactive draws with plotly",
    "distributed": "the PyTorch parts of that package are not here",
}


def refuse_name(name: str, known: Sequence[str]) -> AttributeError:
    """Return an error for a name of that package that is not here, with what there is instead."""
    near = get_close_matches(name, known, 1)
    hint = INSTEAD.get(name, f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}")
    return AttributeError(f"haptera.compat.cebra has no {name!r}; {hint}")
