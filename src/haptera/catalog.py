"""The catalog: from a name to the object behind it, imported only when used.

A part of haptera is one line here. A plugin needs none: an entry point in the group `haptera.adapters` (or `.shifts`,
`.streams`, `.measures`, `.models`, `.loaders`, `.analyses`, `.sections`) adds its name to the same lists. Names from
data files lead to parts of the catalog and nowhere else (`find`); code of one's own is named by a person
(`find_or_import`), as `module:name`, or `file.py:name` for code that is in no package.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from haptera.errors import HapteraError, unknown
from haptera.own_code import find_object


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
            raise HapteraError(f"cannot load {self.target}: {error}") from error


_BUILT_IN: dict[str, dict[str, Entry]] = {
    "shifts": {
        "gaussian_noise": Entry("haptera.shifts:GaussianNoise", "normal noise on every pixel"),
        "shot_noise": Entry("haptera.shifts:ShotNoise", "light counted in photons"),
        "impulse_noise": Entry("haptera.shifts:ImpulseNoise", "values replaced by black and white"),
        "speckle_noise": Entry("haptera.shifts:SpeckleNoise", "normal noise in proportion to the light"),
        "gaussian_blur": Entry("haptera.shifts:GaussianBlur", "blur by a normal kernel"),
        "defocus_blur": Entry("haptera.shifts:DefocusBlur", "every point a disk, as out of focus"),
        "glass_blur": Entry("haptera.shifts:GlassBlur", "pixels swapped with near ones, between two blurs"),
        "motion_blur": Entry("haptera.shifts:MotionBlur", "smeared along a line at a random angle"),
        "zoom_blur": Entry("haptera.shifts:ZoomBlur", "the mean of the image and enlarged copies"),
        "snow": Entry("haptera.shifts:Snow", "a whitened scene and falling flakes"),
        "frost": Entry("haptera.shifts:Frost", "ice crystals over the image"),
        "fog": Entry("haptera.shifts:Fog", "a cloud between lens and scene"),
        "spatter": Entry("haptera.shifts:Spatter", "drops of water or mud on the lens"),
        "contrast": Entry("haptera.shifts:Contrast", "less contrast around each image's mean"),
        "brightness": Entry("haptera.shifts:Brightness", "more light at the same hue and saturation"),
        "saturate": Entry("haptera.shifts:Saturate", "less or more saturated colours"),
        "elastic_transform": Entry("haptera.shifts:ElasticTransform", "pulled and wrinkled like rubber"),
        "pixelate": Entry("haptera.shifts:Pixelate", "blocks of one colour"),
        "jpeg_compression": Entry("haptera.shifts:JpegCompression", "through a JPEG encoder and back"),
        "diffeo": Entry("haptera.shifts:Diffeo", "moved smoothly, zero on the frame; severity is in pixels"),
    },
    "streams": {
        "clean": Entry("haptera.streams:Clean", "the data as it is"),
        "corruptions": Entry("haptera.streams:Corruptions", "every shift at every severity, with a fresh adapter"),
        "continual": Entry("haptera.streams:Continual", "one shift after the other, no reset between them"),
        "ccc": Entry("haptera.streams:CCC", "two corruptions fading into each other, steadily hard", "difficulty"),
        "ccc_benchmark": Entry("haptera.streams:CCCBenchmark", "ccc at three difficulties and speeds, three times"),
        "continual_orders": Entry("haptera.streams:ContinualOrders", "continual, in several orders of the shifts"),
        "recurring": Entry("haptera.streams:Recurring", "continual, and again, several visits, no reset"),
        "gradual": Entry("haptera.streams:Gradual", "one shift after the other, severity up and down, no reset"),
        "mixed": Entry("haptera.streams:Mixed", "every image under another shift and severity"),
        "correlated": Entry("haptera.streams:Correlated", "classes come in runs: sorted, or in Dirichlet slots"),
        "stability": Entry("haptera.streams:Stability", "images as they are, deformed, and with noise of that norm"),
        "directory": Entry("haptera.streams:Directory", "data corrupted on disk, a fresh adapter for each part"),
    },
    "adapters": {
        "none": Entry("haptera.adapters:NoAdaptation", "the model as it is"),
        "watch": Entry("haptera.adapters:Watch", "no adaptation, and a record of how far each batch has shifted"),
        "batchnorm": Entry("haptera.adapters:BatchNorm", "BatchNorm statistics of each batch, with a prior"),
        "unmixing_tns": Entry("haptera.adapters:UnMixingTNS", "several BatchNorm statistics, mixed for each image"),
        "ttaug": Entry("haptera.adapters:TTAug", "no learning: the mean prediction over views of each image"),
        "tent": Entry("haptera.adapters:Tent", "minimises the entropy of predictions"),
        "pseudo_labels": Entry("haptera.adapters:PseudoLabels", "learns a teacher's hard or soft labels"),
        "rpl": Entry("haptera.adapters:RPL", "robust pseudo-labels: generalised cross-entropy"),
        "slr": Entry("haptera.adapters:SLR", "soft likelihood ratio, with a spread mean prediction"),
        "cpl": Entry("haptera.adapters:CPL", "conjugate pseudo-labels of polyloss"),
        "eta": Entry("haptera.adapters:ETA", "entropy of sure and unlike samples only"),
        "eata": Entry("haptera.adapters:EATA", "ETA, anchored where parameters matter"),
        "sar": Entry("haptera.adapters:SAR", "entropy of sure samples at flat places, resets itself"),
        "cotta": Entry("haptera.adapters:CoTTA", "an averaged teacher, views, weights returned to the source"),
        "rdumb": Entry("haptera.adapters:RDumb", "ETA, reset every 1,000 steps"),
        "memo": Entry("haptera.adapters:MEMO", "each image alone: views of it, one step, back to the source"),
        "lame": Entry("haptera.adapters:LAME", "no parameters: similar images get similar predictions"),
        "note": Entry("haptera.adapters:NOTE", "BatchNorm corrected for each image, a balanced sample of the stream"),
        "rotta": Entry("haptera.adapters:RoTTA", "a balanced bank of recent images, an averaged teacher"),
        "adacontrast": Entry("haptera.adapters:AdaContrast", "labels by a vote of neighbours, views against a queue"),
        "gtta": Entry("haptera.adapters:GTTA", "mixtures of labelled and test images, sure pseudo-labels"),
        "rmt": Entry("haptera.adapters:RMT", "an averaged teacher, a symmetric loss, prototypes of classes"),
        "roid": Entry("haptera.adapters:ROID", "sure and diverse samples, weights averaged with the source's, priors"),
        "cmf": Entry("haptera.adapters:CMF", "ROID with a Kalman filter between the source's weights and the new"),
        "weighted_slr": Entry("haptera.adapters:WeightedSLR", "the loss of ROID and CMF alone"),
        "asr": Entry("haptera.adapters:ASR", "ETA, the layers near the output reset when predictions concentrate"),
        "petta": Entry("haptera.adapters:PeTTA", "RoTTA that senses how far it has gone, and slows down"),
        "santa": Entry("haptera.adapters:SANTA", "agrees with the source model, prototypes of classes"),
        "deyo": Entry("haptera.adapters:DeYO", "entropy of samples that are sure because of the object's shape"),
        "dino": Entry("haptera.adapters:DINO", "self-distillation between views, for transformers"),
        "foa": Entry("haptera.adapters:FOA", "forward passes only: a prompt by evolution, also for opaque models"),
        "tpt": Entry("haptera.adapters:TPT", "image-text models: the prompt is tuned for each image alone"),
        "vte": Entry("haptera.adapters:VTE", "image-text models: the surest views and many templates, averaged"),
        "t3a": Entry("haptera.adapters:T3A", "no gradients: prototypes of the surest features classify"),
        "shot": Entry("haptera.adapters:SHOT", "sure and spread predictions, pseudo-labels, a fixed last layer"),
    },
    "measures": {
        "accuracy": Entry("haptera.measures:accuracy", "share of samples whose first class is right"),
        "top5_accuracy": Entry("haptera.measures:top5_accuracy", "share with the right class among the first five"),
        "error": Entry("haptera.measures:error", "one minus accuracy"),
        "accuracy_over_steps": Entry("haptera.measures:accuracy_over_steps", "accuracy in windows along the stream"),
        "expected_calibration_error": Entry("haptera.measures:expected_calibration_error", "confidence off accuracy"),
        "reliability": Entry("haptera.measures:reliability", "accuracy in bins of confidence"),
        "brier_score": Entry("haptera.measures:brier_score", "squared error of probabilities"),
        "negative_log_likelihood": Entry("haptera.measures:negative_log_likelihood", "in nats, of what is right"),
        "class_attraction": Entry("haptera.measures:class_attraction", "classes predicted too often or too rarely"),
        "outside_mapping": Entry("haptera.measures:outside_mapping", "predictions that no class of the data accepts"),
        "filtered_error": Entry("haptera.measures:filtered_error", "error of the predictions inside the mapping"),
        "largest_class_share": Entry("haptera.measures:largest_class_share", "of predictions, along the stream"),
        "mean_prediction_entropy": Entry("haptera.measures:mean_prediction_entropy", "along the stream"),
        "records": Entry("haptera.measures:records", "what the adapter reports, along the stream"),
        "idle_steps": Entry("haptera.measures:idle_steps", "share of steps that taught an adapter nothing"),
        "expected_accuracy": Entry("haptera.measures:expected_accuracy", "of the calibrated model, along a CCC walk"),
        "walk_accuracy": Entry("haptera.measures:walk_accuracy", "along a whole CCC walk, every image the same"),
        "benchmark_accuracy": Entry("haptera.measures:benchmark_accuracy", "over the walks of ccc_benchmark"),
        "seconds_per_image": Entry("haptera.measures:seconds_per_image", "time in the adapter and the model"),
        "peak_bytes": Entry("haptera.measures:peak_bytes", "the most memory of any step"),
        "clean_accuracy": Entry("haptera.measures:clean_accuracy", "on data that is not shifted"),
        "mean_accuracy": Entry("haptera.measures:mean_accuracy", "over severities, then over shifts"),
        "matched_accuracy": Entry("haptera.measures:matched_accuracy", "the same where all adapters were measured"),
        "mean_error": Entry("haptera.measures:mean_error", "over severities, then over shifts"),
        "family_error": Entry("haptera.measures:family_error", "the same for noise, blur, weather and digital"),
        "visit_error": Entry("haptera.measures:visit_error", "over the shifts of each visit of a recurring stream"),
        "mce": Entry("haptera.measures:mce", "errors over those of a reference, which must be named"),
        "mde": Entry("haptera.measures:mde", "the same for the domains of ImageNet-D"),
        "adaptation_gain": Entry("haptera.measures:adaptation_gain", "accuracy minus that of the unadapted model"),
        "mean_gain": Entry("haptera.measures:mean_gain", "of an adapter, over its cells"),
        "learning_gain": Entry("haptera.measures:learning_gain", "accuracy minus that without learning"),
        "recovered": Entry("haptera.measures:recovered", "share of the accuracy lost under a shift that comes back"),
        "model_margin": Entry("haptera.measures:model_margin", "how far the best model is ahead, in each stream"),
        "adapter_margin": Entry("haptera.measures:adapter_margin", "how far the best adapter is ahead of the next"),
        "shift_mean": Entry("haptera.measures:shift_mean", "error under each shift and over shifts, or another one"),
        "shift_margin": Entry("haptera.measures:shift_margin", "how far the best adapter is ahead in shift_mean"),
        "forgetting": Entry("haptera.measures:forgetting", "accuracy lost on clean data at the end of a stream"),
        "collapse": Entry("haptera.measures:collapse", "share of a stream below the unadapted model, for good"),
        "relative_seconds": Entry("haptera.measures:relative_seconds", "time over that of the unadapted model"),
        "relative_bytes": Entry("haptera.measures:relative_bytes", "memory over that of the unadapted model"),
        "relative_stability": Entry("haptera.measures:relative_stability", "R: deformations over noise of their norm"),
        "diffeo_stability": Entry("haptera.measures:diffeo_stability", "D: deformations over other images"),
        "noise_stability": Entry("haptera.measures:noise_stability", "G: noise over other images"),
        "normalised_error": Entry("haptera.measures:normalised_error", "of keypoints, in units of the animal"),
        "pck": Entry("haptera.measures:pck", "share of keypoints that are near enough"),
        "rank_correlation": Entry("haptera.measures:rank_correlation", "of models' errors with those on clean data"),
        "effective_robustness": Entry("haptera.measures:effective_robustness", "accuracy above the line of others"),
        "mean_over_seeds": Entry("haptera.measures:mean_over_seeds", "of all the others, with standard deviations"),
    },
    "models": {
        "linear": Entry("haptera.models:Linear", "one linear map of the pixels"),
        "mlp": Entry("haptera.models:MLP", "hidden layers without weight sharing"),
        "lenet": Entry("haptera.models:LeNet", "two convolutions with pooling, two linear layers"),
        "resnet": Entry("haptera.models:ResNet", "residual blocks with BatchNorm, GroupNorm or no normalisation"),
        "vit": Entry("haptera.models:ViT", "a small vision transformer with LayerNorm"),
    },
    "loaders": {
        "timm": Entry("haptera.models.loaders.timm:load", "timm:resnet50.a1_in1k"),
        "torchvision": Entry("haptera.models.loaders.torchvision:load", "torchvision:resnet50"),
        "hf": Entry("haptera.models.loaders.hf:load", "transformers: hf:ORG/NAME or a folder"),
        "zeroshot": Entry("haptera.models.loaders.zeroshot:load", "image-text models: zeroshot:ORG/NAME:classes=..."),
        "hub": Entry("haptera.models.loaders.hub:load", "torch.hub: hub:FOLDER:ENTRY"),
        "robustbench": Entry("haptera.models.loaders.robustbench:load", "robustbench:NAME"),
        "onnx": Entry("haptera.models.loaders.onnx:load", "onnx:FILE, or a file that ends so; outputs only"),
        "export": Entry("haptera.models.loaders.export:load", "torch.export: a .pt2 file; outputs only"),
        "jit": Entry("haptera.models.loaders.torchscript:load", "TorchScript: a .ts or .torchscript file"),
        "callable": Entry("haptera.models.loaders.callables:load", "module:function of arrays; outputs only"),
        "maite": Entry("haptera.models.loaders.maite:load", "maite:module:object; outputs only"),
    },
    "analyses": {
        "attribute": Entry("haptera.analyses.attribution:attribute", "which channels of a recording carry a label"),
        "embed": Entry("haptera.cli.embed:embed", "what a recording encodes, with the controls that a reader asks for"),
        "identify": Entry("haptera.analyses.identify:identify", "whether contrastive learning finds known latents"),
        "dependencies": Entry("haptera.analyses.dependencies:dependencies", "classes that follow from others"),
        "check-model": Entry("haptera.cli.check_model:check_model", "whether a model is set up as it was trained"),
        "compare": Entry("haptera.analyses.comparison:compare", "in what two studies differ, and what that changes"),
        "diagnose": Entry("haptera.cli.diagnose:diagnose", "whether unlabelled data has shifted, where, at what cost"),
        "gate": Entry("haptera.cli.gate:gate", "whether a candidate may replace the model before it"),
        "stability": Entry("haptera.cli.stability:stability", "deformations compared with noise of the same norm"),
        "trends": Entry("haptera.analyses.trends:trends", "why accuracies on two sets of data fall on a line"),
    },
    "sections": {
        "severity": Entry("haptera.report.study.severity:section", "accuracy against severity"),
        "heatmap": Entry("haptera.report.study.heatmap:section", "model x shift"),
        "methods": Entry("haptera.report.study.methods:section", "adapter x stream, and the winner's margin"),
        "time": Entry("haptera.report.study.time:section", "accuracy over time"),
        "walk": Entry("haptera.report.study.walk:section", "where a CCC stream goes"),
        "shift": Entry("haptera.report.study.shift:section", "size of each shift over depth, and what it predicts"),
        "adaptation": Entry("haptera.report.study.adaptation:section", "records of adapters, collapse, forgetting"),
        "calibration": Entry("haptera.report.study.calibration:section", "accuracy against confidence"),
        "classes": Entry("haptera.report.study.classes:section", "classes predicted too often"),
        "stability": Entry("haptera.report.study.stability:section", "error against stability to deformations"),
        "cost": Entry("haptera.report.study.cost:section", "accuracy against time per image"),
        "results": Entry("haptera.report.study.results:section", "every value"),
    },
}  # fmt: skip
KINDS = tuple(_BUILT_IN)
WORDS = {"shifts": "severity"}
"""Kind -> the setting of all its parts that a bare word stands for: `contrast:5` is `contrast:severity=5`."""


@cache
def entries(kind: str) -> Mapping[str, Entry]:
    """Everything of one kind: our own, then plugins, which cannot replace our own."""
    if kind not in _BUILT_IN:
        raise unknown("kind", kind, KINDS)
    word = WORDS.get(kind, "")
    ours = {name: replace(entry, word=entry.word or word) for name, entry in _BUILT_IN[kind].items()}
    plugins = {
        point.name: Entry(point.value, f"from {point.dist.name if point.dist else 'a plugin'}", word)
        for point in entry_points(group=f"haptera.{kind}")
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
