"""Baselines: the embeddings that everybody knows, of the same windows, beside a contrastive one.

PCA is fitted on the training part. t-SNE (scikit-learn) has no map for new samples, so it sees the whole recording, as
in the source; UMAP (umap-learn, the extra `umap`) likewise, for the same terms. None of them sees a label.
Cost: of t-SNE and UMAP, n log n; 5,000 windows take about 35 s and 50 s on one core.
"""

import warnings
from collections.abc import Callable
from importlib.util import find_spec

import numpy as np
from sklearn.decomposition import PCA
from sklearn.manifold import TSNE
from threadpoolctl import threadpool_limits

from haptera.errors import HapteraError, unknown


def pca(train: np.ndarray, whole: np.ndarray, dimensions: int, seed: int) -> np.ndarray:
    """The first principal components of the training part."""
    count = min(dimensions, train.shape[1], len(train))
    return PCA(count, random_state=seed).fit(train).transform(whole)


def tsne(train: np.ndarray, whole: np.ndarray, dimensions: int, seed: int) -> np.ndarray:
    """t-SNE with its defaults, started from principal components; at most two dimensions.

    The source has two as well, where a sphere in three is as large; three take several times as long.
    """
    few = min(dimensions, 2)
    perplexity = min(30.0, (len(whole) - 1) / 3)
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


BASELINES: dict[str, Callable[[np.ndarray, np.ndarray, int, int], np.ndarray]] = {
    "pca": pca,
    "tsne": tsne,
    "umap": umap,
}


def baseline(name: str, train: np.ndarray, whole: np.ndarray, dimensions: int, seed: int = 0) -> np.ndarray:
    """An embedding of the whole recording, `(samples, dimensions)`.

    Args:
        name: pca, tsne or umap.
        train: `(samples, channels)`, the part that the map may be fitted on.
        whole: everything, in the order of time.
        dimensions: of the embedding.
        seed: of what is random in it.
    """
    if name not in BASELINES:
        raise unknown("baseline", name, BASELINES)
    return BASELINES[name](train, whole, dimensions, seed)


def available_baselines() -> tuple[str, ...]:
    """The baselines that can run here."""
    return tuple(name for name in BASELINES if name != "umap" or find_spec("umap") is not None)


def _reduce(signal: np.ndarray, seed: int, most: int = 50) -> np.ndarray:
    """Return at most 50 principal components, which is what t-SNE is usually given."""
    return PCA(most, random_state=seed).fit_transform(signal) if min(signal.shape) > most else signal
