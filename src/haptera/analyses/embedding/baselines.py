"""Baselines: the embeddings that everybody knows, of the same windows, beside a contrastive one.

PCA, factor analysis and a variational autoencoder are fitted on the training part. t-SNE (scikit-learn) has no map for
new samples, so it sees the held-out ones too, as in the source; UMAP (umap-learn, the extra `umap`) likewise, for the
same terms. None of them sees a label. The decoder that does, by tuning curves, is in `tuning`.
Cost: t-SNE and UMAP are n log n. 5,000 windows take t-SNE about 35 s of one core; UMAP takes 28 s for 2,000, most of
which it compiles, and 90 s for 24,000, t-SNE then several minutes. So they get evenly spaced samples by default.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec

import numpy as np
from sklearn.decomposition import PCA, FactorAnalysis
from sklearn.exceptions import ConvergenceWarning
from sklearn.manifold import TSNE
from threadpoolctl import threadpool_limits

from haptera.errors import HapteraError, unknown


def pca(train: np.ndarray, whole: np.ndarray, dimensions: int, seed: int) -> np.ndarray:
    """The first principal components of the training part."""
    count = min(dimensions, train.shape[1], len(train))
    return PCA(count, random_state=seed).fit(train).transform(whole)


def factors(train: np.ndarray, whole: np.ndarray, dimensions: int, seed: int) -> np.ndarray:
    """Means of the factors of the training part, whose noise may differ from channel to channel."""
    count = min(dimensions, train.shape[1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # of the last digits, after its 1,000 rounds
        return FactorAnalysis(count, random_state=seed).fit(train).transform(whole)


def vae(train: np.ndarray, whole: np.ndarray, dimensions: int, seed: int) -> np.ndarray:
    """Means of a variational autoencoder's posterior, Poisson for counts."""
    # Not imported by its name: plans and pages know of baselines and need no torch.
    variational = import_module("haptera.analyses.embedding.variational")
    return np.asarray(variational.fit_variational(train, dimensions, seed).transform(whole))


def tsne(train: np.ndarray, whole: np.ndarray, dimensions: int, seed: int) -> np.ndarray:
    """t-SNE with its defaults, started from principal components; at most two dimensions.

    The source has two as well, where a sphere in three is as large; three take several times as long.
    """
    few = min(dimensions, 2)
    perplexity = min(30.0, (len(whole) - 1) / 3)
    with threadpool_limits(1):  # others may be made at the same time
        return TSNE(few, init="pca", perplexity=perplexity, random_state=seed).fit_transform(_reduce(whole, seed))


def umap(train: np.ndarray, whole: np.ndarray, dimensions: int, seed: int) -> np.ndarray:
    """UMAP with its defaults."""
    with warnings.catch_warnings():  # it warns of packages that nobody asked for, and of its own defaults
        warnings.simplefilter("ignore")
        try:
            from umap import UMAP
        except ImportError as error:
            raise HapteraError("UMAP needs umap-learn: pip install 'haptera[umap]'") from error
        with threadpool_limits(1):  # UMAP changes the number of threads behind torch's back; this puts it back
            return np.asarray(UMAP(n_components=dimensions, random_state=seed, n_jobs=1).fit_transform(whole))


@dataclass(frozen=True)
class Baseline:
    """A method and what is to be known of it.

    Attributes:
        embed: from training part, samples to embed, dimensions and seed to an embedding of the samples.
        seconds: of one core for 3,000 windows, about.
        sees_everything: it has no map for new samples, and sees held-out ones while it learns.
    """

    embed: Callable[[np.ndarray, np.ndarray, int, int], np.ndarray]
    seconds: float
    sees_everything: bool = False


BASELINES: dict[str, Baseline] = {
    "pca": Baseline(pca, 0.01),
    "factors": Baseline(factors, 0.3),
    "vae": Baseline(vae, 1.0),
    "tsne": Baseline(tsne, 20.0, sees_everything=True),
    "umap": Baseline(umap, 30.0, sees_everything=True),
}


def baseline(name: str, train: np.ndarray, whole: np.ndarray, dimensions: int, seed: int = 0) -> np.ndarray:
    """An embedding of the whole recording, `(samples, dimensions)`.

    Args:
        name: pca, factors, vae, tsne or umap.
        train: `(samples, channels)`, the part that the map may be fitted on.
        whole: everything, in the order of time.
        dimensions: of the embedding.
        seed: of what is random in it.
    """
    if name not in BASELINES:
        raise unknown("baseline", name, BASELINES)
    return BASELINES[name].embed(train, whole, dimensions, seed)


def available_baselines() -> tuple[str, ...]:
    """The baselines that can run here."""
    return tuple(name for name in BASELINES if name != "umap" or find_spec("umap") is not None)


def evenly_spaced(samples: int, most: int) -> np.ndarray:
    """Rows of at most so many samples, from the first to the last.

    >>> evenly_spaced(7, 4).tolist(), evenly_spaced(3, 4).tolist()
    ([0, 2, 4, 6], [0, 1, 2])
    """
    return np.unique(np.linspace(0, samples - 1, min(most, samples)).astype(int))


def _reduce(signal: np.ndarray, seed: int, most: int = 50) -> np.ndarray:
    """Return at most 50 principal components, which is what t-SNE is usually given."""
    return PCA(most, random_state=seed).fit_transform(signal) if min(signal.shape) > most else signal
