"""scikit-learn's own checks: all that there are for a transformer hold, so no exception is listed."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from haptera.contrastive.estimator import ContrastiveEmbedding


@parametrize_with_checks([ContrastiveEmbedding(max_iterations=3, batch_size=16, output_dimension=3)])
def test_is_an_estimator(estimator, check):
    check(estimator)
