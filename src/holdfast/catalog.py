"""The catalog: from a name to the object behind it, imported only when used.

A part of holdfast is one line here. A plugin needs none: an entry point in the group `holdfast.adapters`
(or `.shifts`, `.streams`, `.measures`, `.models`, `.sections`) adds its name to the same lists. Names from data files
lead to parts of the catalog and nowhere else (`find`); code of one's own is named by a person (`find_or_import`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from holdfast.errors import HoldfastError, unknown
from holdfast.objects import find_object


@dataclass(frozen=True)
class Entry:
    """Where an object lives, what it is in a few words, and which of its settings a bare word stands for, if any.

    `ccc:easy` is `ccc:difficulty=easy`.
    """

    target: str
    summary: str
    word: str = ""

    def load(self) -> Any:
        """Import the object."""
        module, _, name = self.target.partition(":")
        try:
            return getattr(import_module(module), name)
        except (ImportError, AttributeError) as error:
            raise HoldfastError(f"cannot load {self.target}: {error}") from error


_BUILT_IN: dict[str, dict[str, Entry]] = {
    "shifts": {
        "gaussian_noise": Entry("holdfast.shifts:GaussianNoise", "normal noise on every pixel"),
        "shot_noise": Entry("holdfast.shifts:ShotNoise", "light counted in photons"),
        "impulse_noise": Entry("holdfast.shifts:ImpulseNoise", "values replaced by black and white"),
        "speckle_noise": Entry("holdfast.shifts:SpeckleNoise", "normal noise in proportion to the light"),
        "gaussian_blur": Entry("holdfast.shifts:GaussianBlur", "blur by a normal kernel"),
        "defocus_blur": Entry("holdfast.shifts:DefocusBlur", "every point a disk, as out of focus"),
        "glass_blur": Entry("holdfast.shifts:GlassBlur", "pixels swapped with near ones, between two blurs"),
        "motion_blur": Entry("holdfast.shifts:MotionBlur", "smeared along a line at a random angle"),
        "zoom_blur": Entry("holdfast.shifts:ZoomBlur", "the mean of the image and enlarged copies"),
        "snow": Entry("holdfast.shifts:Snow", "a whitened scene and falling flakes"),
        "frost": Entry("holdfast.shifts:Frost", "ice crystals over the image"),
        "fog": Entry("holdfast.shifts:Fog", "a cloud between lens and scene"),
        "spatter": Entry("holdfast.shifts:Spatter", "drops of water or mud on the lens"),
        "contrast": Entry("holdfast.shifts:Contrast", "less contrast around each image's mean"),
        "brightness": Entry("holdfast.shifts:Brightness", "more light at the same hue and saturation"),
        "saturate": Entry("holdfast.shifts:Saturate", "less or more saturated colours"),
        "elastic_transform": Entry("holdfast.shifts:ElasticTransform", "pulled and wrinkled like rubber"),
        "pixelate": Entry("holdfast.shifts:Pixelate", "blocks of one colour"),
        "jpeg_compression": Entry("holdfast.shifts:JpegCompression", "through a JPEG encoder and back"),
        "diffeo": Entry("holdfast.shifts:Diffeo", "moved smoothly, zero on the frame; severity is in pixels"),
    },
    "streams": {
        "clean": Entry("holdfast.streams:Clean", "the data as it is"),
        "corruptions": Entry("holdfast.streams:Corruptions", "every shift at every severity, with a fresh adapter"),
        "continual": Entry("holdfast.streams:Continual", "one shift after the other, no reset between them"),
        "ccc": Entry("holdfast.streams:CCC", "two corruptions fading into each other, steadily hard", "difficulty"),
        "continual_orders": Entry("holdfast.streams:ContinualOrders", "continual, in several orders of the shifts"),
        "gradual": Entry("holdfast.streams:Gradual", "one shift after the other, severity up and down, no reset"),
        "mixed": Entry("holdfast.streams:Mixed", "every image under another shift and severity"),
        "correlated": Entry("holdfast.streams:Correlated", "classes come in runs: sorted, or in Dirichlet slots"),
        "stability": Entry("holdfast.streams:Stability", "images as they are, deformed, and with noise of that norm"),
        "directory": Entry("holdfast.streams:Directory", "data corrupted on disk, a fresh adapter for each part"),
    },
    "adapters": {
        "none": Entry("holdfast.adapters:NoAdaptation", "the model as it is"),
        "watch": Entry("holdfast.adapters:Watch", "no adaptation, and a record of how far each batch has shifted"),
        "batchnorm": Entry("holdfast.adapters:BatchNorm", "BatchNorm statistics of each batch, with a prior"),
        "tent": Entry("holdfast.adapters:Tent", "minimises the entropy of predictions"),
        "pseudo_labels": Entry("holdfast.adapters:PseudoLabels", "learns a teacher's hard or soft labels"),
        "rpl": Entry("holdfast.adapters:RPL", "robust pseudo-labels: generalised cross-entropy"),
        "slr": Entry("holdfast.adapters:SLR", "soft likelihood ratio, with a spread mean prediction"),
        "cpl": Entry("holdfast.adapters:CPL", "conjugate pseudo-labels of polyloss"),
        "eta": Entry("holdfast.adapters:ETA", "entropy of sure and unlike samples only"),
        "eata": Entry("holdfast.adapters:EATA", "ETA, anchored where parameters matter"),
        "sar": Entry("holdfast.adapters:SAR", "entropy of sure samples at flat places, resets itself"),
        "cotta": Entry("holdfast.adapters:CoTTA", "an averaged teacher, views, weights returned to the source"),
        "rdumb": Entry("holdfast.adapters:RDumb", "ETA, reset every 1,000 steps"),
        "memo": Entry("holdfast.adapters:MEMO", "each image alone: views of it, one step, back to the source"),
        "lame": Entry("holdfast.adapters:LAME", "no parameters: similar images get similar predictions"),
        "rotta": Entry("holdfast.adapters:RoTTA", "a balanced bank of recent images, an averaged teacher"),
        "dino": Entry("holdfast.adapters:DINO", "self-distillation between views, for transformers"),
    },
    "measures": {
        "accuracy": Entry("holdfast.measures:accuracy", "share of samples whose first class is right"),
        "top5_accuracy": Entry("holdfast.measures:top5_accuracy", "share with the right class among the first five"),
        "error": Entry("holdfast.measures:error", "one minus accuracy"),
        "accuracy_over_steps": Entry("holdfast.measures:accuracy_over_steps", "accuracy in windows along the stream"),
        "expected_calibration_error": Entry("holdfast.measures:expected_calibration_error", "confidence off accuracy"),
        "reliability": Entry("holdfast.measures:reliability", "accuracy in bins of confidence"),
        "brier_score": Entry("holdfast.measures:brier_score", "squared error of probabilities"),
        "negative_log_likelihood": Entry("holdfast.measures:negative_log_likelihood", "in nats, of what is right"),
        "class_attraction": Entry("holdfast.measures:class_attraction", "classes predicted too often or too rarely"),
        "outside_mapping": Entry("holdfast.measures:outside_mapping", "predictions that no class of the data accepts"),
        "largest_class_share": Entry("holdfast.measures:largest_class_share", "of predictions, along the stream"),
        "mean_prediction_entropy": Entry("holdfast.measures:mean_prediction_entropy", "along the stream"),
        "records": Entry("holdfast.measures:records", "what the adapter reports, along the stream"),
        "idle_steps": Entry("holdfast.measures:idle_steps", "share of steps that taught an adapter nothing"),
        "expected_accuracy": Entry("holdfast.measures:expected_accuracy", "of the calibrated model, along a CCC walk"),
        "seconds_per_image": Entry("holdfast.measures:seconds_per_image", "time in the adapter and the model"),
        "peak_bytes": Entry("holdfast.measures:peak_bytes", "the most memory of any step"),
        "clean_accuracy": Entry("holdfast.measures:clean_accuracy", "on data that is not shifted"),
        "mean_accuracy": Entry("holdfast.measures:mean_accuracy", "over severities, then over shifts"),
        "matched_accuracy": Entry("holdfast.measures:matched_accuracy", "the same where all adapters were measured"),
        "mean_error": Entry("holdfast.measures:mean_error", "over severities, then over shifts"),
        "family_error": Entry("holdfast.measures:family_error", "the same for noise, blur, weather and digital"),
        "mce": Entry("holdfast.measures:mce", "errors over those of a reference, which must be named"),
        "mde": Entry("holdfast.measures:mde", "the same for the domains of ImageNet-D"),
        "adaptation_gain": Entry("holdfast.measures:adaptation_gain", "accuracy minus that of the unadapted model"),
        "mean_gain": Entry("holdfast.measures:mean_gain", "of an adapter, over its cells"),
        "learning_gain": Entry("holdfast.measures:learning_gain", "accuracy minus that without learning"),
        "recovered": Entry("holdfast.measures:recovered", "share of the accuracy lost under a shift that comes back"),
        "model_margin": Entry("holdfast.measures:model_margin", "how far the best model is ahead, in each stream"),
        "adapter_margin": Entry("holdfast.measures:adapter_margin", "how far the best adapter is ahead of the next"),
        "forgetting": Entry("holdfast.measures:forgetting", "accuracy lost on clean data at the end of a stream"),
        "collapse": Entry("holdfast.measures:collapse", "share of a stream below the unadapted model, for good"),
        "relative_seconds": Entry("holdfast.measures:relative_seconds", "time over that of the unadapted model"),
        "relative_bytes": Entry("holdfast.measures:relative_bytes", "memory over that of the unadapted model"),
        "relative_stability": Entry("holdfast.measures:relative_stability", "R: deformations over noise of their norm"),
        "diffeo_stability": Entry("holdfast.measures:diffeo_stability", "D: deformations over other images"),
        "noise_stability": Entry("holdfast.measures:noise_stability", "G: noise over other images"),
        "normalised_error": Entry("holdfast.measures:normalised_error", "of keypoints, in units of the animal"),
        "pck": Entry("holdfast.measures:pck", "share of keypoints that are near enough"),
        "rank_correlation": Entry("holdfast.measures:rank_correlation", "of models' errors with those on clean data"),
        "effective_robustness": Entry("holdfast.measures:effective_robustness", "accuracy above the line of others"),
        "mean_over_seeds": Entry("holdfast.measures:mean_over_seeds", "of all the others, with standard deviations"),
    },
    "models": {
        "linear": Entry("holdfast.models:Linear", "one linear map of the pixels"),
        "mlp": Entry("holdfast.models:MLP", "hidden layers without weight sharing"),
        "lenet": Entry("holdfast.models:LeNet", "two convolutions with pooling, two linear layers"),
        "resnet": Entry("holdfast.models:ResNet", "residual blocks with BatchNorm, GroupNorm or no normalisation"),
        "vit": Entry("holdfast.models:ViT", "a small vision transformer with LayerNorm"),
    },
    "sections": {
        "severity": Entry("holdfast.report.severity:section", "accuracy against severity"),
        "heatmap": Entry("holdfast.report.heatmap:section", "model x shift"),
        "methods": Entry("holdfast.report.methods:section", "adapter x stream, and the winner's margin"),
        "time": Entry("holdfast.report.time:section", "accuracy over time"),
        "walk": Entry("holdfast.report.walk:section", "where a CCC stream goes"),
        "shift": Entry("holdfast.report.shift:section", "size of the shift over depth, predicted and measured errors"),
        "adaptation": Entry("holdfast.report.adaptation:section", "records of adapters, collapse, forgetting"),
        "calibration": Entry("holdfast.report.calibration:section", "accuracy against confidence"),
        "classes": Entry("holdfast.report.classes:section", "classes predicted too often"),
        "stability": Entry("holdfast.report.stability_study:section", "error against stability to deformations"),
        "cost": Entry("holdfast.report.cost:section", "accuracy against time per image"),
        "results": Entry("holdfast.report.results:section", "every value"),
    },
}  # fmt: skip
KINDS = tuple(_BUILT_IN)


@cache
def entries(kind: str) -> Mapping[str, Entry]:
    """Everything of one kind: our own, then plugins, which cannot replace our own."""
    if kind not in _BUILT_IN:
        raise unknown("kind", kind, KINDS)
    ours = _BUILT_IN[kind]
    plugins = {
        point.name: Entry(point.value, f"from {point.dist.name if point.dist else 'a plugin'}")
        for point in entry_points(group=f"holdfast.{kind}")
        if point.name not in ours
    }
    return ours | plugins


def find(kind: str, name: str) -> Any:
    """Return the object behind a name of the catalog; for an unknown name, an error with the nearest.

    Names that were read from data (a header, a manifest, a calibration) come here: they never lead to other code.
    """
    known = entries(kind)
    if name not in known:
        raise unknown(kind.removesuffix("s"), name, known)
    return known[name].load()


def find_or_import(kind: str, name: str) -> Any:
    """Return the object behind a name of the catalog, `module:object` or `file.py:object`.

    It runs code of the file or module, so the name must be one that a person wrote, in a command or a study file.
    """
    return find_object(name, kind.removesuffix("s")) if ":" in name else find(kind, name)


def label(name: str, settings: Mapping[str, Any]) -> str:
    """A name with its settings, as the command line writes it.

    >>> label("batchnorm", {"prior": 8, "frozen": True})
    'batchnorm:prior=8,frozen=True'
    """
    return name + (":" if settings else "") + ",".join(f"{key}={value}" for key, value in settings.items())


def name_of(kind: str, thing: object) -> str | None:
    """The name of an object in the catalog, or None."""
    target = (getattr(thing, "__module__", ""), getattr(thing, "__qualname__", ""))
    for name, entry in entries(kind).items():
        module, _, attribute = entry.target.partition(":")
        if attribute == target[1] and (target[0] == module or target[0].startswith(module + ".")):
            return name
    return None
