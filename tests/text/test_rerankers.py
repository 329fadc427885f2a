"""The scores and the training steps of rerankers."""

import gc
import weakref

import numpy as np
import pytest
import tensorflow as tf

from tests import helpers
from tests.text.conftest import inputs_of, make
from tfr_smooth import losses, text
from tfr_smooth.text import reranker, text_lists

SLOW = pytest.mark.slow
MODELS = {"late": text.LateInteraction, "cross": text.CrossEncoder, "single": text.SingleVector}
COLUMNS = {"query": "query", "text": "text", "label": "label", "query_id": "query_id"}

IDS = np.int32([[[2, 5, 6, 3, -1], [2, 7, 3, -1, -1], [-1] * 5]])


def normalized(vectors):
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def test_late_interaction_matches_the_formula_of_colbert():
    model, query = text.LateInteraction(make()), np.int32([[2, 8, 9, 3, -1]])
    scores = model({"query_ids": query, "document_ids": IDS}).numpy()
    vectors, others = normalized(model.encoder(query)[0, :4].numpy()), normalized(model.encoder(IDS[0]).numpy())
    for number, length in enumerate((4, 3)):
        assert scores[0, number] == pytest.approx((vectors @ others[number, :length].T).max(-1).sum(), abs=1e-5)
    assert scores[0, 2] == pytest.approx(-4.0)  # no tokens: -1 for each token of the query


@pytest.mark.parametrize("pooling", ["mean", "first"])
def test_single_vectors_are_compared_by_the_cosine(pooling):
    encoder, query = make(), np.int32([[2, 8, 9, 3, -1]])
    encoder.pooling = pooling
    scores = text.SingleVector(encoder)({"query_ids": query, "document_ids": IDS}).numpy()
    tokens = {"mean": (slice(4), slice(4), slice(3)), "first": [slice(1)] * 3}[pooling]
    hidden = [encoder(query)[0], *encoder(IDS[0])[:2]]
    vectors = normalized(np.stack([part[kept].numpy().mean(0) for part, kept in zip(hidden, tokens, strict=True)]))
    np.testing.assert_allclose(scores[0], [*(20.0 * vectors[1:] @ vectors[0]), -20.0], atol=1e-4)


def test_the_documents_of_other_queries_are_negatives_unless_they_are_the_same_text():
    first, second, third = [2, 5, 6, 3], [2, 7, 3, -1], [2, 8, 8, 3]
    inputs = {
        "query_ids": np.int32([[2, 5, 3], [2, 8, 3]]),
        "document_ids": np.int32([[first, second, [-1] * 4], [second, third, first]]),
    }
    labels = np.float32([[1, 0, -1], [0, 2, 0]])
    model = without_dropout(text.SingleVector)
    scores, targets = model.training_scores(inputs, tf.constant(labels))
    np.testing.assert_array_equal(targets, [[1, 0, -1, -1, 0, -1], [-1, -1, -1, 0, 2, 0]])
    alone = model(inputs).numpy()
    np.testing.assert_allclose(scores[0, :3], alone[0], atol=1e-4)
    np.testing.assert_allclose(scores[1, 3:], alone[1], atol=1e-4)
    np.testing.assert_allclose(scores[0, 5], alone[0, 0], atol=1e-4)


@pytest.mark.parametrize(("training", "encoded"), [(True, [(1, 2), (1, 3), (2, 6)]), (False, [(6, 8)])])
def test_training_encodes_only_texts_in_groups_of_like_lengths(monkeypatch, training, encoded):
    ids = np.full([2, 3, 8], -1, np.int32)  # two documents are padding
    for place, length in (((0, 0), 6), ((0, 1), 2), ((1, 0), 3), ((1, 1), 5)):
        ids[place][:length] = np.random.default_rng(length).integers(5, 12, length)
    model, shapes = without_dropout(), []
    whole = model.encoder(ids.reshape(6, 8)).numpy().reshape(2, 3, 8, -1)
    monkeypatch.setattr(reranker, "_groups", lambda: 3)
    monkeypatch.setattr(reranker._compiled, "traced", lambda function, **_: function)  # for the sizes
    call = model.encoder.call
    monkeypatch.setattr(
        model.encoder, "call", lambda *args, **kwargs: [shapes.append((*args[0].shape,)), call(*args, **kwargs)][1]
    )
    hidden, mask = model.encode(tf.constant(ids), training=training)
    np.testing.assert_allclose(hidden.numpy()[mask], whole[ids >= 0], atol=1e-5)
    assert shapes == encoded and hidden.shape == whole.shape


def test_a_cross_encoder_scores_the_mean_over_passages():
    model = text.CrossEncoder(make(), head_rate=10.0)
    pairs = np.int32([[[[2, 5, 3, 6, 3], [2, 5, 3, 7, 3]], [[2, 5, 3, 8, 3], [-1] * 5]]])
    first, second, third = model.encoder(pairs[0].reshape(4, 5)[:3]).numpy()[:, 0] @ (10.0 * model.kernel.numpy())
    np.testing.assert_allclose(model({"pair_ids": pairs}), [[(first + second) / 2, third]], atol=1e-5)


def batch(table, architecture="late", frozen_layers=0, lists=6):
    """Returns a batch of training lists."""
    lists_of = text_lists.lists_of(table, COLUMNS, labeled=True)
    inputs = inputs_of(architecture, make(frozen_layers=frozen_layers), table.iloc[lists_of.rows])
    drawn = text_lists.TrainingLists(lists_of, relevant=2, negatives=2, seed=0)
    return next(iter(drawn.dataset(inputs, batch_size=lists, epochs=range(1))))


def without_dropout(scorer=text.LateInteraction, **kwargs):
    return scorer(make(dropout=0.0), **kwargs)


def step(model, features, labels, optimizer):
    model.compile(optimizer=optimizer, loss=losses.ListNetLoss(), run_eagerly=True)  # TextRanker compiles the step.
    history = model.fit(tf.data.Dataset.from_tensors((features, labels)), verbose=0)
    return history.history["loss"][0], [variable.numpy() for variable in model.variables]


@SLOW
def test_micro_batches_have_the_loss_and_step_of_the_whole_batch(table):
    features, labels = batch(table, lists=3)
    loss, weights = step(without_dropout(), features, labels, tf.keras.optimizers.SGD(1.0))
    expected = losses.ListNetLoss()(labels, without_dropout()(features))
    assert loss == pytest.approx(float(expected), rel=1e-5)
    for micro_batches in (2, 4):  # of different sizes, and one without lists
        model = without_dropout(micro_batches=micro_batches)
        found, in_parts = step(model, features, labels, tf.keras.optimizers.SGD(1.0))
        assert found == pytest.approx(loss, rel=1e-5)
        helpers.assert_same(weights, in_parts, rtol=2e-5, atol=1e-5)


@SLOW
def test_the_training_graph_is_freed_with_the_model(table):
    graphs = []

    def loss(labels, scores):
        graphs.append(weakref.ref(scores.graph))
        return losses.ListNetLoss()(labels, scores)

    model = without_dropout()
    model.compile(optimizer="adam", loss=loss)
    model.optimizer.build(model.trainable_variables)  # If `fit` builds it, Keras keeps the graph.
    model.fit(tf.data.Dataset.from_tensors(batch(table)), verbose=0)
    del model
    tf.keras.backend.clear_session()
    gc.collect()
    assert graphs
    assert [graph() for graph in graphs] == [None] * len(graphs)


@SLOW
def test_head_rate_scales_the_learning_rate_of_the_head(table):
    features, labels = batch(table)
    model = without_dropout(head_rate=30.0)
    inner = model.encoder.backbone.transformer_layers[0].trainable_weights[0]
    before = inner.numpy()
    assert 30.0 * float(tf.convert_to_tensor(model.scale)) == pytest.approx(1.0)
    step(model, features, labels, tf.keras.optimizers.Adam(1e-4, epsilon=1e-12))
    # Adam's first step changes each weight by the learning rate.
    np.testing.assert_allclose(abs(inner.numpy() - before).max(), 1e-4, rtol=1e-2)
    assert abs(30.0 * float(tf.convert_to_tensor(model.scale)) - 1.0) == pytest.approx(30.0 * 1e-4, rel=1e-2)


@SLOW
def test_frozen_layers_are_not_trained_and_their_outputs_are_cached(table, tmp_path):
    encoder = make(num_layers=2, frozen_layers=1)
    inputs, model, pairs = inputs_of("late", encoder, table), text.LateInteraction(encoder), np.arange(8)[np.newaxis]
    plain = inputs.batch(pairs)
    scores = model(plain).numpy()
    inputs.freeze(tmp_path)
    kept = inputs.batch(pairs)
    assert set(kept) - set(plain) == {"query_hidden", "document_hidden"}
    np.testing.assert_allclose(model(kept), scores, atol=5e-3)  # float16
    layers = (encoder.backbone.token_embedding, *encoder.backbone.transformer_layers)
    before = [layer.get_weights() for layer in layers]
    step(model, kept, np.float32([[1, 0, 0, 0, 1, 0, 0, 0]]), tf.keras.optimizers.SGD(1.0))
    changed = [
        [(old != new).any() for old, new in zip(weights, layer.get_weights(), strict=True)]
        for weights, layer in zip(before, layers, strict=True)
    ]
    assert [any(each) for each in changed] == [False, False, True]
    files = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    inputs_of("late", encoder, table).freeze(tmp_path)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == files  # The trained layers do not matter.


@pytest.mark.parametrize(
    ("architecture", "frozen_layers"),
    [("late", 0), *(pytest.param(*case, marks=SLOW) for case in (("late", 1), ("single", 0), ("cross", 1)))],
)
def test_ranking_in_batches_of_similar_lengths_returns_the_models_scores(table, architecture, frozen_layers, tmp_path):
    encoder = make(frozen_layers=frozen_layers)
    model, inputs = MODELS[architecture](encoder), inputs_of(architecture, encoder, table)
    ids = inputs.batch(np.arange(len(table))[:, np.newaxis])
    inputs.freeze(tmp_path)
    tolerance = 5e-3 if frozen_layers else 1e-5  # float16
    np.testing.assert_allclose(inputs.scores(model), model(ids)[:, 0], atol=tolerance)


@SLOW
@pytest.mark.parametrize(("architecture", "policy"), [("late", "mixed_bfloat16"), ("cross", "mixed_float16")])
def test_mixed_precision_trains_close_to_float32(table, architecture, policy):
    some = batch(table, architecture)
    trained, moved = {}, {}
    for name in ("float32", policy):
        with helpers.precision(name):
            tf.keras.utils.set_random_seed(0)
            model = without_dropout(MODELS[architecture])
            before = [variable.numpy() for variable in model.trainable_variables]
            optimizer = tf.keras.optimizers.SGD(0.1)
            if name == "mixed_float16":  # The default scale overflows at first, and the step is skipped.
                optimizer = tf.keras.mixed_precision.LossScaleOptimizer(optimizer, initial_scale=1024.0)
            trained[name], _ = step(model, *some, optimizer)
            scores = model(some[0])
        assert scores.dtype == tf.float32
        assert all(variable.dtype in (tf.float32, "float32") for variable in model.trainable_variables)
        differences = zip(model.trainable_variables, before, strict=True)
        moved[name] = sum(np.square(variable.numpy() - old).sum() for variable, old in differences)
    assert trained[policy] == pytest.approx(trained["float32"], abs=0.05)
    assert moved[policy] == pytest.approx(moved["float32"], rel=0.2)


@SLOW
@pytest.mark.parametrize(("architecture", "family"), [("late", "bert"), ("cross", "deberta")])
def test_models_are_saved_and_loaded_with_their_tokenizer(tmp_path, table, architecture, family):
    encoder = make(family, num_layers=2, frozen_layers=1)
    model, features = MODELS[architecture](encoder, micro_batches=2), inputs_of(architecture, encoder, table)
    model.save(tmp_path / "model.keras")
    for found in (tf.keras.models.load_model(tmp_path / "model.keras"), model.copy()):
        same = inputs_of(architecture, found.encoder, table)
        np.testing.assert_array_equal(same.scores(found), features.scores(model))
        assert found.micro_batches == 2 and len(found.trainable_variables) == len(model.trainable_variables)


def test_bad_arguments_are_refused():
    for name, value in (("micro_batches", 0), ("head_rate", 0.0)):
        with pytest.raises(ValueError, match=f"`{name}` must be"):
            without_dropout(**{name: value})


def test_training_lists_are_redrawn_in_each_epoch(table):
    lists = text_lists.lists_of(table, COLUMNS, labeled=True)
    drawn = text_lists.TrainingLists(lists, relevant=2, negatives=3, seed=0)
    first, second = drawn.epoch(0), drawn.epoch(1)
    assert first == drawn.epoch(0) != second and len(first) == len(drawn)
    queries, labels = lists.query_of_document, lists.values("label")
    assert sorted(queries[places[0]] for places in first) == sorted(queries[places[0]] for places in second)
    for places in first:
        assert len(set(places)) == len(places) and len(set(queries[places])) == 1
        assert 1 <= (labels[places] > 0).sum() <= 2 and 1 <= (labels[places] == 0).sum() <= 3
