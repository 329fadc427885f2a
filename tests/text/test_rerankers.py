"""The scores and the training steps of rerankers."""

import gc
import weakref

import numpy as np
import pytest
import tensorflow as tf

from tests import helpers
from tests.text.conftest import SCORERS, few_families, inputs_of, make, word_piece
from tfr_smooth import losses, text
from tfr_smooth.text import token_inputs

IDS = np.int32([[[2, 5, 6, 3, 0], [2, 7, 3, 0, 0], [0, 0, 0, 0, 0]]])


def late(**kwargs):
    return text.LateInteraction(make()[0], **kwargs)


def normalized(vectors):
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def test_late_interaction_matches_the_formula_of_colbert():
    model, query = late(), np.int32([[2, 8, 9, 3, 0]])
    scores = model({"query_ids": query, "document_ids": IDS}).numpy()
    vectors, others = normalized(model.encoder(query)[0, :4].numpy()), normalized(model.encoder(IDS[0]).numpy())
    for number, length in enumerate((4, 3)):
        assert scores[0, number] == pytest.approx((vectors @ others[number, :length].T).max(-1).sum(), abs=1e-5)
    assert scores[0, 2] == pytest.approx(-4.0)  # no tokens: -1 for each token of the query


def test_a_cross_encoder_scores_the_mean_over_passages():
    model = text.CrossEncoder(make()[0], head_rate=10.0)
    pairs = np.int32([[[[2, 5, 3, 6, 3], [2, 5, 3, 7, 3]], [[2, 5, 3, 8, 3], [0] * 5]]])
    first, second, third = model.encoder(pairs[0].reshape(4, 5)[:3]).numpy()[:, 0] @ (10.0 * model.kernel.numpy())
    np.testing.assert_allclose(model({"pair_ids": pairs}), [[(first + second) / 2, third]], atol=1e-5)


def batch(collection, run, lists=6):
    inputs = inputs_of("late", word_piece(), collection, run)
    drawn = text.TrainingLists(list(collection.queries), collection.labels, run)
    return next(iter(drawn.dataset(inputs, batch_size=lists)))


def without_dropout(scorer=text.LateInteraction, **kwargs):
    return scorer(make(dropout=0.0)[0], **kwargs)


def step(model, features, labels, optimizer):
    model.compile(optimizer=optimizer, loss=losses.ListNetLoss())
    history = model.fit(tf.data.Dataset.from_tensors((features, labels)), verbose=0)
    return history.history["loss"][0], [variable.numpy() for variable in model.variables]


@pytest.mark.slow
@pytest.mark.parametrize("micro_batches", [2, 4, 9])
def test_micro_batches_have_the_loss_and_step_of_the_whole_batch(collection, run, micro_batches):
    features, labels = batch(collection, run)
    loss, weights = step(without_dropout(), features, labels, tf.keras.optimizers.SGD(1.0))
    model = without_dropout(micro_batches=micro_batches)
    found, in_parts = step(model, features, labels, tf.keras.optimizers.SGD(1.0))
    assert found == pytest.approx(loss, rel=1e-5)
    expected = losses.ListNetLoss()(labels, without_dropout()(features))
    assert loss == pytest.approx(float(expected), rel=1e-5)
    helpers.assert_same(weights, in_parts, rtol=1e-7, atol=1e-5)


@pytest.mark.slow
def test_the_training_graph_is_freed_with_the_model(collection, run):
    graphs = []

    def loss(labels, scores):
        graphs.append(weakref.ref(scores.graph))
        return losses.ListNetLoss()(labels, scores)

    model = late()
    model.compile(optimizer="adam", loss=loss)
    model.optimizer.build(model.trainable_variables)  # If `fit` builds it, Keras keeps the graph.
    model.fit(tf.data.Dataset.from_tensors(batch(collection, run)), verbose=0)
    del model
    tf.keras.backend.clear_session()
    gc.collect()
    assert graphs
    assert [graph() for graph in graphs] == [None] * len(graphs)


@pytest.mark.slow
def test_head_rate_scales_the_learning_rate_of_the_head(collection, run):
    features, labels = batch(collection, run)
    model = without_dropout(head_rate=30.0)
    inner = model.encoder.backbone.transformer_layers[0].trainable_weights[0]
    before = inner.numpy()
    assert 30.0 * float(tf.convert_to_tensor(model.scale)) == pytest.approx(1.0)
    step(model, features, labels, tf.keras.optimizers.Adam(1e-4, epsilon=1e-12))
    # Adam's first step changes each weight by the learning rate.
    np.testing.assert_allclose(abs(inner.numpy() - before).max(), 1e-4, rtol=1e-2)
    assert abs(30.0 * float(tf.convert_to_tensor(model.scale)) - 1.0) == pytest.approx(30.0 * 1e-4, rel=1e-2)


@pytest.mark.slow
def test_frozen_layers_are_not_trained_and_their_outputs_are_cached(collection, run, tmp_path):
    encoder, tokenizer = make(frozen_layers=1)
    inputs = text.LateInputs(collection, tokenizer, query_length=6, document_length=12)
    drawn = text.TrainingLists(list(collection.queries), collection.labels, run)
    plain, _ = next(iter(drawn.dataset(inputs)))
    model = text.LateInteraction(encoder)
    scores = model(plain).numpy()
    inputs.freeze(encoder, tmp_path)
    kept, labels = next(iter(drawn.dataset(inputs)))
    assert set(kept) - set(plain) == {"query_hidden", "document_hidden"}
    np.testing.assert_allclose(model(kept), scores, atol=5e-3)  # float16
    layers = (encoder.backbone.token_embedding, *encoder.backbone.transformer_layers)
    before = [layer.get_weights() for layer in layers]
    step(model, kept, labels, tf.keras.optimizers.SGD(1.0))
    changed = [
        [(old != new).any() for old, new in zip(weights, layer.get_weights(), strict=True)]
        for weights, layer in zip(before, layers, strict=True)
    ]
    assert [any(each) for each in changed] == [False, False, True]
    files = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    text.LateInputs(collection, tokenizer, query_length=6, document_length=12).freeze(encoder, tmp_path)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == files  # The trained layers do not matter.


@pytest.mark.parametrize("scorer", ["late", pytest.param("cross", marks=pytest.mark.slow)])
def test_ranking_returns_the_models_scores(collection, run, scorer):
    encoder, tokenizer = make()
    inputs, model = inputs_of(scorer, tokenizer, collection, run), SCORERS[scorer](encoder)
    scores = inputs.rank(model, {**run, "q1": {}})
    assert scores["q1"] == {}
    documents = list(run["q0"])
    features = inputs.batch(["q0"], [documents])
    expected = model({name: tf.constant(array) for name, array in features.items()})[0].numpy()
    assert list(scores["q0"]) == documents
    np.testing.assert_allclose(list(scores["q0"].values()), expected, atol=1e-5)


@pytest.mark.parametrize("frozen_layers", [0, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("scorer", ["late", pytest.param("cross", marks=pytest.mark.slow)])
def test_inputs_without_common_padding_have_the_same_scores(
    collection, run, scorer, frozen_layers, tmp_path, monkeypatch
):
    encoder, tokenizer = make(frozen_layers=frozen_layers)
    model, found, lengths = SCORERS[scorer](encoder), {}, {}
    for step_size in (2, 64):
        monkeypatch.setattr(token_inputs, "_STEP", step_size)
        inputs = inputs_of(scorer, tokenizer, collection, run)
        inputs.freeze(encoder, tmp_path / str(step_size))
        found[step_size] = np.array([*inputs.rank(model, {"q0": run["q0"]})["q0"].values()])
        batches = list(text.TrainingLists(["q0", "q1"], collection.labels, run).dataset(inputs, batch_size=1))
        lengths[step_size] = {features[f"{name}_ids"].shape[-1] for features, _ in batches for name in inputs.ids}
    assert max(lengths[64]) == max(array.shape[-1] for array in inputs.ids.values()) > min(lengths[2])
    np.testing.assert_allclose(found[2], found[64], atol=1e-5 if frozen_layers == 0 else 5e-3)


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
@pytest.mark.parametrize("scorer", ["cross", "late"])
def test_mixed_precision_trains_close_to_float32(collection, run, scorer, policy):
    inputs = inputs_of(scorer, word_piece(), collection, run)
    batch = next(iter(text.TrainingLists(list(collection.queries), collection.labels, run).dataset(inputs)))
    trained, moved = {}, {}
    for name in ("float32", policy):
        tf.keras.mixed_precision.set_global_policy(name)
        try:
            tf.keras.utils.set_random_seed(0)
            model = without_dropout(SCORERS[scorer])
            before = [variable.numpy() for variable in model.trainable_variables]
            optimizer = tf.keras.optimizers.SGD(0.1)
            if name == "mixed_float16":  # The default scale overflows at first, and the step is skipped.
                optimizer = tf.keras.mixed_precision.LossScaleOptimizer(optimizer, initial_scale=1024.0)
            trained[name], _ = step(model, *batch, optimizer)
            scores = model(batch[0])
        finally:
            tf.keras.mixed_precision.set_global_policy("float32")
        assert scores.dtype == tf.float32
        assert all(variable.dtype in (tf.float32, "float32") for variable in model.trainable_variables)
        differences = zip(model.trainable_variables, before, strict=True)
        moved[name] = sum(np.square(variable.numpy() - old).sum() for variable, old in differences)
    assert trained[policy] == pytest.approx(trained["float32"], abs=0.05)
    assert moved[policy] == pytest.approx(moved["float32"], rel=0.2)


@pytest.mark.slow
def test_padding_has_the_id_in_the_vocabulary(collection):
    encoder, tokenizer = make("roberta")
    inputs = text.LateInputs(collection, tokenizer, query_length=6, document_length=12)
    ids = inputs.batch(["q0", "q1"], [["d1", "d2"], ["d3"]])["document_ids"]
    np.testing.assert_array_equal(ids[1, 1], np.ones(12))
    assert ids[0, 1, 0] == 0 and not encoder.mask(ids[1, 1]).numpy().any()


@pytest.mark.parametrize("scorer", ["late", pytest.param("cross", marks=pytest.mark.slow)])
@few_families
def test_models_are_saved_and_loaded(tmp_path, collection, run, scorer, family):
    encoder, tokenizer = make(family, frozen_layers=1)
    model = SCORERS[scorer](encoder, micro_batches=2)
    batch = inputs_of(scorer, tokenizer, collection, run).batch(["q0"], [list(run["q0"])])
    features = {name: tf.constant(array) for name, array in batch.items()}
    model.save(tmp_path / "model.keras")
    loaded = tf.keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(loaded(features), model(features))
    assert loaded.micro_batches == 2 and len(loaded.trainable_variables) == len(model.trainable_variables)


@pytest.mark.parametrize(("name", "value"), [("micro_batches", 0), ("head_rate", 0.0)])
def test_bad_arguments_are_refused(name, value):
    with pytest.raises(ValueError, match=f"`{name}` must be"):
        late(**{name: value})


def test_training_lists_are_redrawn_in_each_epoch(collection, run):
    lists = text.TrainingLists(list(collection.queries), collection.labels, run, relevant=2, others=3)
    first, second = list(lists.epoch(0)), list(lists.epoch(1))
    assert first == list(lists.epoch(0)) != second
    assert len(first) == len(lists) and sorted(q for q, _, _ in first) == sorted(q for q, _, _ in second)
    for query_id, documents, labels in first:
        assert len(set(documents)) == len(documents) == len(labels)
        relevant = [doc_id for doc_id, label in zip(documents, labels, strict=True) if label > 0]
        assert 1 <= len(relevant) <= 2 and len(documents) - len(relevant) <= 3
        assert all(collection.labels[query_id][doc_id] > 0 for doc_id in relevant)
        assert all(doc_id in run[query_id] for doc_id in documents if doc_id not in relevant)


def test_queries_without_both_relevant_and_other_documents_are_skipped():
    run = {"a": {"x": 1.0}, "b": {"x": 1.0}, "c": {}, "d": {"x": 2.0}}
    labels = {"a": {"x": 1}, "b": {}, "c": {"x": 1}, "d": {"y": 2}}
    lists = text.TrainingLists(list(run), labels, run)
    assert list(lists.epoch(0)) == [("d", ["y", "x"], [2, 0])]
    with pytest.raises(ValueError, match="`queries` must contain a query with a relevant and another document"):
        text.TrainingLists(["a", "b"], labels, run)
