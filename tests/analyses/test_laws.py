"""Every analysis keeps the laws; whoever adds one adds a line to ANALYSES."""

from functools import partial

import numpy as np
import pytest
import torch
from tests.large_numbers import check_large_numbers

import haptera
from haptera.analyses.dependencies import learn_new_classes
from haptera.analyses.embedding.plan import Plan
from haptera.analyses.identify import Training
from haptera.analyses.identify.analysis import identify_rows
from haptera.analyses.sessions.adaptation import adapt_session as adapt
from haptera.analyses.sessions.analysis import embed_sessions as joint
from haptera.data import ArrayData, digits
from haptera.models import LeNet, ResNet
from haptera.recordings.reading import Source
from haptera.run.report import StudyReport
from haptera.shifts import GaussianNoise
from haptera.streams import Clean
from haptera.testing import check_analysis
from haptera.testing.measures import example_table
from haptera.theory.known_models import ProbitModels
from recorded_studies import answers, plant, record

SHORT = {"max_iterations": 5, "batch_size": 32}
TABLES = """
dimensions = 2
steps = 5
batch_size = 32
rows = [
    {process = "sphere/uniform/vmf=10", model = "sphere/vmf", seeds = [0, 1]},
    {process = "sphere/vmf=4/vmf=10", model = "sphere/vmf"},
]
"""
NETS = [f"net-{place}" for place in range(9)]


def trends(folder):
    for name, right in zip("ab", ProbitModels(np.linspace(-0.2, 1.6, 9), noise=0.4).correct(600, 400), strict=True):
        np.savez(folder / f"{name}.npz", models=NETS, correct=right)
    return haptera.trends(folder / "a.npz", folder / "b.npz", draws=50)


def trends_of_accuracies(folder):
    for name, right in zip("ab", ProbitModels(np.linspace(-0.2, 1.6, 9), noise=0.4).correct(600, 400), strict=True):
        rows = [f"{model},{accuracy}" for model, accuracy in zip(NETS, right.mean(1), strict=True)]
        (folder / f"{name}.csv").write_text("\n".join(["model,accuracy", *rows]))
    return haptera.trends(folder / "a.csv", folder / "b.csv", draws=50)


def trends_to_many_sets(folder):
    for place, name in enumerate("abc"):
        right = ProbitModels(np.linspace(-0.2, 1.6, 9), noise=0.4).correct(600, 400, seed=place)[place > 0]
        np.savez(folder / f"{name}.npz", models=NETS, correct=right)
    return haptera.trends(folder / "a.npz", folder / "b.npz", folder / "c.npz", draws=50)


def trends_without_labels(folder):
    generator = np.random.default_rng(0)
    for place, name in enumerate("abcdef"):
        targets = generator.integers(0, 4, 200)
        seen = 3 * np.eye(4)[targets] + (1 + 0.2 * place) * generator.standard_normal((200, 4))
        logits = np.stack([seen + size * generator.standard_normal((200, 4)) for size in np.linspace(0.5, 2.5, 9)])
        np.savez(folder / f"{name}.npz", models=NETS, logits=logits, targets=targets)
    known = [folder / f"{name}.npz" for name in "bcde"]
    return haptera.trends(folder / "a.npz", *known, unlabelled=folder / "f.npz")


def dependencies(folder):
    generator = np.random.default_rng(0)
    targets = generator.integers(0, 6, 400)
    logits = generator.standard_normal((400, 6)) + 2 * np.eye(6)[targets]
    logits[:, 5] = logits[:, 0] + logits[:, 1]
    np.savez(folder / "net.npz", logits=logits, targets=targets, classes=["cat", "dog", "eel", "fox", "gnu", "hen"])
    return haptera.dependencies(folder / "net.npz")


def dependencies_without_targets(folder):
    np.savez(folder / "few.npz", logits=np.random.default_rng(0).standard_normal((3, 5)))
    return haptera.dependencies(folder / "few.npz", alpha=1e6)


def new_classes(folder):
    generator = np.random.default_rng(0)
    targets = generator.integers(0, 8, 400)
    logits = generator.standard_normal((400, 8)) + 3 * np.eye(8)[targets]
    np.savez(folder / "net.npz", logits=logits, targets=targets)
    return learn_new_classes(folder / "net.npz", new=2, runs=2)


def diagnose(folder):
    torch.manual_seed(0)
    test = digits("test", size=16)
    images = test.images(np.arange(120))
    old = ArrayData(images[:60], test.targets[:60], "old")
    new = ArrayData(GaussianNoise(4)(images[60:]), None, "new")
    return haptera.diagnose(ResNet(width=4, stem=2).eval(), new, old, known_samples=20)


def diagnose_without_a_reference(folder):
    torch.manual_seed(0)
    images = digits("test", size=16).images(np.arange(60))
    return haptera.diagnose(ResNet(width=4, stem=2).eval(), ArrayData(images, None, "new"))


def check_model(folder):
    torch.manual_seed(0)
    net = ResNet(width=4, stem=2).eval()
    net[2].running_mean += 0.1
    data = digits("test", size=16)
    return haptera.check_model(net, data, digits("train", size=16), samples=60)


def compare(folder):
    torch.manual_seed(0)
    for name, size in (("a", 20), ("b", 30)):
        few = ArrayData(digits("test", size=16).images(np.arange(60)), digits("test").targets[:60], "few")
        haptera.Study({name: ResNet(width=4, stem=2)}, [Clean(few, batch_size=size)], out=folder / name).run()
    return haptera.compare(folder / "a", folder / "b")


def recorded_studies_of(folder):
    generator = np.random.default_rng(0)
    before = answers(generator, images=300)
    record(folder / "released", before)
    record(folder / "candidate", plant(generator, before, [("contrast", 4), ("contrast", 5)], 0.2))
    return folder / "candidate", folder / "released"


def gate(folder):
    return haptera.gate(*recorded_studies_of(folder), bar=["accuracy@fog:1=0.99"])


def gate_quick_on_records(folder):
    return haptera.gate(*recorded_studies_of(folder), quick=True)


def gate_quick(folder):
    torch.manual_seed(0)
    few = ArrayData(digits("test", size=16).images(np.arange(200)), digits("test").targets[:200], "few")
    studies = [
        haptera.Study({"net": ResNet(width=4, stem=2)}, [Clean(few, batch_size=20)], out=folder / name) for name in "ab"
    ]
    studies[0].run()
    return partial(haptera.gate, studies[1], folder / "a", quick=True, drop=0.2, progress=False)


def stability(folder):
    torch.manual_seed(0)
    nets = {name: LeNet(size=16, width=width) for name, width in (("narrow", 2), ("wide", 4), ("wider", 6))}
    fresh = {"wide, init": LeNet(size=16, width=4)}
    return haptera.stability(nets, digits("test", size=16), initial=fresh, samples=40, delta=(1, 2), layers=True)


def recording(folder, *labels, units=5):
    """A head that turns, and five units that each fire around a direction of their own, in a file."""
    generator = np.random.default_rng(0)
    heading = np.mod(np.cumsum(generator.normal(0, 0.15, 300)), 2 * np.pi)
    rates = 0.1 + 4 * np.exp(3 * (np.cos(heading[:, None] - np.arange(units) * 1.257) - 1))
    side, trial = np.where(heading > np.pi, "left", "right"), np.arange(300) // 20
    np.savez(folder / "mouse.npz", spikes=generator.poisson(rates), heading=heading, side=side, trial=trial)
    return Source(folder / "mouse.npz", "spikes", list(labels), trials="trial")


def embed(folder):
    plan = Plan(labels=("heading", "side"), seeds=2, shuffles=1, baselines=("pca",), folds=3, settings=SHORT)
    return haptera.embed(recording(folder, "heading", "side"), plan, progress=False)


def embed_by_time(folder):
    plan = Plan(seeds=1, shuffles=1, baselines=("pca",), topology=False, settings=SHORT)
    return partial(haptera.embed, recording(folder), plan, progress=False)


def embed_sessions(folder):
    sources = []
    for place, units in enumerate((5, 7)):
        (folder / str(place)).mkdir()
        sources.append(recording(folder / str(place), "heading", "side", units=units))
    plan = Plan(labels=("heading", "side"), seeds=1, shuffles=1, baselines=(), topology=False, settings=SHORT)
    return partial(joint, sources, plan, progress=False)


def adapt_session(folder):
    plan = Plan(labels=("heading",), seeds=1, shuffles=0, baselines=(), topology=False, settings=SHORT)
    haptera.embed(recording(folder, "heading"), plan, progress=False).save(folder / "hd")
    new = recording(folder, "heading", units=6)
    return partial(adapt, folder / "hd" / "model.safetensors", new, plan, progress=False)


def attribute(folder):
    plan = Plan(labels=("heading",), seeds=1, shuffles=0, baselines=(), topology=False, settings=SHORT)
    haptera.embed(recording(folder, "heading"), plan, progress=False).save(folder / "hd")
    return partial(haptera.attribute, folder / "hd", fits=2, copies=2, progress=False)


def identify(folder):
    training = Training(steps=5, batch_size=32, supervised=True)
    return partial(haptera.identify, dimensions=2, training=training, progress=False)


def identify_tables(folder):
    (folder / "tables.toml").write_text(TABLES)
    return partial(identify_rows, folder / "tables.toml")


def study(folder):
    return StudyReport(example_table(), "Example", {"seeds": [0]}, ["one cell failed"])


ANALYSES = [
    trends,
    trends_of_accuracies,
    trends_to_many_sets,
    trends_without_labels,
    dependencies,
    dependencies_without_targets,
    new_classes,
    diagnose,
    diagnose_without_a_reference,
    check_model,
    compare,
    gate,
    pytest.param(gate_quick_on_records, marks=pytest.mark.long),
    pytest.param(gate_quick, marks=pytest.mark.long),
    pytest.param(stability, marks=pytest.mark.long),
    pytest.param(embed, marks=pytest.mark.long),
    embed_by_time,
    pytest.param(embed_sessions, marks=pytest.mark.long),
    pytest.param(adapt_session, marks=pytest.mark.long),
    attribute,
    pytest.param(identify, marks=pytest.mark.long),
    pytest.param(identify_tables, marks=pytest.mark.long),
    study,
]


@pytest.mark.long
@pytest.mark.parametrize("make", ANALYSES, ids=lambda make: make.__name__)
def test_an_analysis_keeps_the_laws(make, tmp_path):
    broken = {law: why for law, why in check_analysis(make(tmp_path)).items() if why}
    assert not broken


@pytest.mark.long
@pytest.mark.parametrize(
    "make",
    [
        *(
            trends,
            trends_of_accuracies,
            dependencies,
            dependencies_without_targets,
            diagnose,
            check_model,
            gate,
            stability,
        ),
        *(embed, embed_sessions, adapt_session, attribute, identify, identify_tables),
    ],
    ids=lambda make: make.__name__,
)
def test_answers_have_their_number_in_large_and_lead_to_what_shows_it(make, tmp_path):
    made = make(tmp_path)
    check_large_numbers(made() if isinstance(made, partial) else made)
