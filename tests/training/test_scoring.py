"""The scores of a dataset, query by query."""

import numpy as np
import pytest
import tensorflow as tf

from tfr_smooth import data, training
from tfr_smooth.training import explanation


def by_query(queries):
    """Maps each query id to its document ids, labels and scores, as lists."""
    return {
        query.query_id: (query.doc_ids, query.labels.tolist(), np.round(query.scores, 4).tolist()) for query in queries
    }


FEATURES = np.array([[[1.0], [2.0], [0.0]], [[3.0], [4.0], [5.0]]], np.float32)
LABELS = np.array([[1.0, 0.0, -1.0], [0.0, 2.0, 1.0]], np.float32)
EXPECTED = {"0": (["0", "1"], [1, 0], [2, 4]), "1": (["0", "1", "2"], [0, 2, 1], [6, 8, 10])}


def twice(shape=(None, 1), squeeze=True, **kwargs):
    """A functional model whose scores are twice the feature."""
    features = tf.keras.Input(shape, **kwargs)
    dense = tf.keras.layers.Dense(1, use_bias=False, kernel_initializer=tf.keras.initializers.Constant(2.0))
    scores = dense(features)
    if squeeze:
        scores = tf.keras.layers.Reshape((-1,))(scores)
    return tf.keras.Model({kwargs["name"]: features} if "name" in kwargs else features, scores)


def test_plain_batches_of_features_and_labels_are_scored():
    for model in (twice(), twice(squeeze=False)):
        for weights in ((), (np.ones([2, 3], np.float32),)):
            assert by_query(training.score_queries(model, [(FEATURES, LABELS, *weights)])) == EXPECTED
            dataset = tf.data.Dataset.from_tensor_slices((FEATURES, LABELS, *weights)).batch(1)
            assert by_query(training.score_queries(model, dataset)) == EXPECTED  # numbers continue across batches


def test_ragged_batches_are_scored():
    features = tf.RaggedTensor.from_tensor(FEATURES, lengths=[2, 3], ragged_rank=1)
    labels = tf.RaggedTensor.from_tensor(LABELS, lengths=[2, 3])
    dataset = tf.data.Dataset.from_tensor_slices((features, labels)).batch(2)
    for model in (lambda x: 2.0 * x, lambda x: (2.0 * x).to_tensor(), lambda x: (2.0 * x).to_tensor()[:, :, 0]):
        for batches in ([(features, labels)], dataset):
            assert by_query(training.score_queries(model, batches)) == EXPECTED


def test_inputs_without_labels_have_labels_of_0():
    for element in (FEATURES, (FEATURES,), {"features": FEATURES}):
        model = twice(name="features") if isinstance(element, dict) else twice()
        found = by_query(training.score_queries(model, [element]))
        assert found["0"] == (["0", "1", "2"], [0, 0, 0], [2, 4, 0])


def test_queries_and_documents_have_the_ids_of_the_inputs_which_the_model_does_not_get():
    ids = {"query_id": np.array([3, 4]), "doc_id": np.array([["x", "y", ""], ["u", "v", "w"]])}

    def model(inputs):
        assert inputs.keys() == {"features"}
        return 2 * inputs["features"]

    assert by_query(training.score_queries(model, [({"features": FEATURES, **ids}, LABELS)])) == {
        "3": (["x", "y"], [1, 0], [2, 4]),
        "4": (["u", "v", "w"], [0, 2, 1], [6, 8, 10]),
    }


def test_datasets_of_files_and_tables_without_ids_are_scored(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("1 qid:a 1:1\n0 qid:a 1:2\n0 qid:b 1:3\n2 qid:b 1:4\n1 qid:b 1:5\n")
    rows = np.array([[1.0], [2.0], [3.0], [4.0], [5.0]])
    arrays = data.from_arrays(rows, [1, 0, 0, 2, 1], group=[2, 3], weights=np.ones(5)).batches(1)
    for dataset in (data.read_letor(path).batches(2), arrays):
        assert by_query(training.score_queries(lambda inputs: 2 * inputs["features"], dataset)) == EXPECTED


def test_invalid_scores_labels_and_batches_are_refused():
    for model, element, message in [
        (lambda x: x[:, :2], (FEATURES, LABELS), "`model` must return a score for each document, 2 lists of up to 3"),
        (lambda x: x[:, 0, 0], (FEATURES, LABELS), r"scores of `model` must be \[batch, list\], got shape \(2,\)"),
        (lambda x: x, (FEATURES, LABELS[0]), r"labels of `dataset` must be \[batch, list\], got shape \(3,\)"),
    ]:
        with pytest.raises(ValueError, match=message):
            list(training.score_queries(model, [element]))


def test_plain_batches_of_several_lengths_are_not_retraced():
    model = twice()
    for _ in range(5):
        list(training.score_queries(model, [(FEATURES, LABELS), (FEATURES[:, :2], LABELS[:, :2]), (FEATURES, LABELS)]))
    assert explanation.compiled_scorer(model).experimental_get_tracing_count() <= 3


def test_score_rows_returns_the_scores_in_the_order_of_the_rows():
    features = np.arange(11.0)[:, np.newaxis]
    lists = data.from_arrays(features, None, [5, 1, 5, 2, 1, 5, 5, 2, 9, 1, 5])
    scores = training.score_rows(lambda inputs: 2 * inputs["features"], lists, batch_size=2)
    assert scores.dtype == np.float32 and scores.tolist() == [2.0 * row for row in range(11)]
    chosen = training.score_rows(lambda inputs: inputs["features"], lists.take([2, 1]))
    assert chosen.tolist() == [1, 3, 4, 7, 9]
