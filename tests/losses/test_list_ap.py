"""ListAP: the histogram of the paper, its limits, and squashing of unbounded scores."""

import numpy as np
import pytest

from tests import helpers
from tests.helpers import references


def a_list(seed, length):
    random = np.random.RandomState(seed)
    labels = random.randint(0, 3, length)
    labels[random.randint(length)] = 1
    return labels, random.randn(length)


@pytest.mark.parametrize(
    ("length", "num_bins", "temperature"), [(1, 20, 5.0), (2, 20, 0.3), (100, 2, 5.0), (100, 20, 0.3), (100, 20, 5.0)]
)
def test_value_and_gradient_equal_the_paper(length, num_bins, temperature):
    labels, scores = a_list(length, length)
    arguments = {"num_bins": num_bins, "temperature": temperature}
    value, gradient = helpers.value_and_gradient(helpers.each("list_ap", **arguments), labels[None], scores[None])
    np.testing.assert_allclose(value, [1.0 - references.list_ap(labels, scores, **arguments)], atol=1e-13)
    if length > 1:  # A single document equals the mean, which is on the edge of a bin.
        slopes = -references.central_differences(lambda s: references.list_ap(labels, s, **arguments), scores)
        np.testing.assert_allclose(gradient[0], slopes, atol=1e-7)


def test_documents_with_extreme_scores_share_the_outer_bins():
    labels = np.array([[1, 0, 0, 1]])
    near, far = np.array([[40.0, 30.0, -30.0, -40.0]]), np.array([[4e9, 30.0, -30.0, -4e9]])
    for scores in (near, far):  # half of the documents in each of two bins is relevant
        np.testing.assert_allclose(helpers.each("list_ap")(labels, scores), [0.5], rtol=1e-12)
