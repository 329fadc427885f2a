"""Labels from the scores of a teacher."""

import numpy as np
import pytest

from tfr_smooth import data, losses


def test_the_lowest_label_of_each_query_is_0_and_differences_are_divided_by_the_temperature():
    scores, qid = np.array([-3.0, 5.0, 1.0, -1.0, 7.0]), np.array(["b", "a", "b", "a", "c"])
    found = data.labels_from_scores(scores, qid, temperature=2.0)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, [0.0, 3.0, 2.0, 0.0, 0.0])


def test_scores_shifted_per_query_give_the_same_labels_and_list_net_is_least_at_the_scores():
    random = np.random.RandomState(0)
    scores, qid = random.randn(12), np.repeat([7, 3, 5], 4)
    labels = data.labels_from_scores(scores, qid)
    np.testing.assert_allclose(data.labels_from_scores(scores + qid, qid), labels, rtol=1e-5, atol=1e-6)
    rows = labels.reshape(3, 4), scores.reshape(3, 4)
    at_scores, elsewhere = (float(losses.ListNetLoss()(rows[0], values)) for values in (rows[1], random.randn(3, 4)))
    assert at_scores < elsewhere


def test_no_rows_and_invalid_arguments():
    assert data.labels_from_scores([], []).shape == (0,)
    with pytest.raises(ValueError, match="`scores` must be finite, got nan"):
        data.labels_from_scores([1.0, np.nan], [1, 1])
    with pytest.raises(ValueError, match=r"`scores` and `qid` must have the shape \[rows\], got \(2,\) and \(3,\)"):
        data.labels_from_scores([1.0, 2.0], [1, 1, 1])
    with pytest.raises(ValueError, match="`temperature` must be a finite number > 0, got 0.0"):
        data.labels_from_scores([1.0], [1], temperature=0.0)
