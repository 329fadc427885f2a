"""The dataset builders: padding, passes, sharding, and equal batches from records and LETOR text."""

import collections

import numpy as np
import pytest
import tensorflow as tf

from tests import helpers
from tfr_smooth import data, models

tfr = helpers.tf_ranking(module=True)
from tests.tf_ranking.pipelines import LABEL, SPEC, files, letor_builder, model_builder, scalar, simple  # noqa: E402
from tfr_smooth import tf_ranking  # noqa: E402

SCHEMA = data.ElwcSchema(features="custom_features_{}")
BUILDERS = {"records": simple, "letor": letor_builder}


@pytest.fixture(params=BUILDERS)
def make(request, records, letor):
    """Creates a builder of either kind, with these arguments."""
    paths = {"records": records, "letor": letor}[request.param]
    return lambda **arguments: BUILDERS[request.param](paths, **arguments)


def query_ids(dataset, queries):
    """The ids of the queries of a dataset, identified by their first feature."""
    by_value = {float(query.features[0, 0]): query.query_id for query in queries}
    first = [x for features, *_ in dataset for x in features["custom_features_1"].numpy()[:, 0, 0]]
    return [by_value[float(value)] for value in first]


@pytest.mark.parametrize("default", [0.0, -1.0, 3.0, None])
def test_padding_has_label_minus_one_for_any_default_of_the_spec(default, records, queries):
    batches = simple(records, ("utility", scalar(default))).build_valid_dataset()
    rows = [row for features, y in batches for row in zip(features["mask"].numpy(), y.numpy(), strict=True)]
    assert len(rows) == len(queries["valid"])
    for (mask, labels), query in zip(rows, queries["valid"], strict=True):
        np.testing.assert_array_equal(labels[mask], query.labels)
        assert (labels[~mask] == -1.0).all()


def test_documents_without_a_label_get_the_default_or_raise_an_error(tmp_path):
    def example(**features):
        values = {n: tf.train.Feature(float_list=tf.train.FloatList(value=[v])) for n, v in features.items()}
        return tf.train.Example(features=tf.train.Features(feature=values)).SerializeToString()

    record = data.elwc._message_class()(examples=[example(utility=2.0), example(custom_features_1=1.0)])
    with tf.io.TFRecordWriter(str(tmp_path / "r")) as writer:
        writer.write(record.SerializeToString())
    paths = dict.fromkeys(("train", "valid"), str(tmp_path / "r"))
    ((_, labels),) = simple(paths).build_valid_dataset()
    assert labels.numpy().tolist() == [[2.0, 0.0]]
    with pytest.raises(tf.errors.InvalidArgumentError, match="A document without a label"):
        list(simple(paths, ("utility", scalar(None))).build_valid_dataset())


@pytest.mark.parametrize(
    ("mask", "label", "problem"),
    [
        (None, LABEL, "since padding would become documents, got the default 0.0 for 'utility'."),
        (None, ("utility", scalar(None)), "since padding would become documents, got the default None for 'utility'."),
        ("mask", ("utility", tf.io.FixedLenFeature([], tf.float32)), "must have the shape (1,), got [] for 'utility'."),
        ("mask", ("utility", tf.io.VarLenFeature(tf.float32)), "must be a pair of a name and a tf.io.FixedLenFeature"),
        ("mask", ["utility"], "must be a pair of a name and a tf.io.FixedLenFeature"),
    ],
)
def test_bad_label_specs_are_refused(mask, label, problem, records):
    one, multi = tf_ranking.SimpleDatasetBuilder, tf_ranking.MultiLabelDatasetBuilder
    for builder, given in ((one, label), (multi, {"t": label})):
        with pytest.raises(ValueError) as raised:
            builder({}, SPEC, mask, given, files(records))
        assert problem in str(raised.value)


def test_a_mask_is_not_needed_with_a_negative_default(records):
    without = simple(records, ("utility", scalar(-1.0)), mask=None).build_valid_dataset()
    for (_, labels), (_, expected) in zip(without, simple(records).build_valid_dataset(), strict=True):
        np.testing.assert_array_equal(labels, expected)


def test_weights_and_several_labels_are_read(records):
    both = {"one": LABEL, "two": ("custom_features_1", scalar(0.0))}
    features = {"custom_features_2": SPEC["custom_features_2"]}
    weight = ("custom_features_3", scalar(1.0))
    builder = tf_ranking.MultiLabelDatasetBuilder({}, features, "mask", both, files(records), weight)
    for (inputs, labels, weights), (all_inputs, expected) in zip(
        builder.build_valid_dataset(), simple(records).build_valid_dataset(), strict=True
    ):
        mask = inputs["mask"].numpy()
        np.testing.assert_array_equal(labels["one"], expected)
        second = np.where(mask, all_inputs["custom_features_1"].numpy()[..., 0], -1.0)
        np.testing.assert_array_equal(labels["two"], second)
        np.testing.assert_array_equal(weights.numpy()[mask], all_inputs["custom_features_3"].numpy()[mask][:, 0])


def test_validation_is_one_pass_in_order_and_training_shuffles_each_pass(make, queries):
    """Each pass contains every list once."""
    builder = make()
    valid = builder.build_valid_dataset()
    assert valid.cardinality() == 4
    assert query_ids(valid, queries["valid"]) == [query.query_id for query in queries["valid"]]
    assert builder.train_batches() == 6
    train = builder.build_train_dataset()
    assert train.cardinality() == tf.data.INFINITE_CARDINALITY
    seen = query_ids(train.take(12), queries["train"])
    once = [query.query_id for query in queries["train"]]
    assert sorted(seen[:22]) == sorted(seen[22:]) == sorted(once) and seen[:22] != seen[22:]


def test_two_workers_share_one_file(make, queries):
    """As `tf.distribute` shards a dataset. FILE, the default policy, fails with one file."""
    from tensorflow.python.data.experimental.ops import distribute

    builder = make()
    dataset = builder.build_valid_dataset()
    for each in (dataset, builder.build_train_dataset()):
        policy = each.options().experimental_distribute.auto_shard_policy
        assert policy == tf.data.experimental.AutoShardPolicy.DATA
    shares = [query_ids(distribute._AutoShardDataset(dataset, 2, worker), queries["valid"]) for worker in (0, 1)]
    assert min(map(len, shares)) > 0
    assert sorted(sum(shares, [])) == sorted(query.query_id for query in queries["valid"])


@pytest.mark.parametrize(
    "arguments", [{}, {"list_size": 3}, {"valid_list_size": 2}, {"convert_labels_to_binary": True}]
)
def test_letor_text_yields_the_batches_of_the_records(arguments, letor, tmp_path):
    paths = {part: str(tmp_path / part) for part in letor}
    for part, path in paths.items():
        data.letor_to_tfrecord(letor[part], path, schema=SCHEMA, num_features=3)
    theirs = tf_ranking.SimpleDatasetBuilder({}, SPEC, "mask", LABEL, files(paths, **arguments))
    ours = letor_builder(letor, **arguments)
    assert {name: s.shape for name, s in ours.example_feature_spec.items()} == {n: s.shape for n, s in SPEC.items()}
    pairs = list(zip(ours.build_valid_dataset(), theirs.build_valid_dataset(), strict=True))
    assert len(pairs) == 4
    for (inputs, labels), (expected_inputs, expected) in pairs:
        assert inputs.keys() == expected_inputs.keys()
        np.testing.assert_array_equal(labels, expected)
        mask = inputs["mask"].numpy()
        np.testing.assert_array_equal(mask, expected_inputs["mask"])
        for name in SPEC:
            np.testing.assert_array_equal(inputs[name].numpy()[mask], expected_inputs[name].numpy()[mask])


def test_letor_features_are_one_vector_by_default(letor):
    one, each = tf_ranking.LetorDatasetBuilder(files(letor)), letor_builder(letor, "f{}")
    for (vector, _), (columns, _) in zip(one.build_valid_dataset(), each.build_valid_dataset(), strict=True):
        np.testing.assert_array_equal(vector["features"], tf.concat([columns[f"f{i}"] for i in (1, 2, 3)], 2))


@pytest.mark.parametrize("first", [0, 1, 5, 6, 13])
def test_a_seeded_dataset_resumes_at_first_batch(make, first, queries):
    builder = make(seed=3)
    train = builder.build_train_dataset()
    assert train.cardinality() == tf.data.INFINITE_CARDINALITY
    whole = query_ids(train.skip(first).take(4), queries["train"])
    assert query_ids(builder.build_train_dataset(first_batch=first).take(4), queries["train"]) == whole
    assert max(collections.Counter(whole).values()) <= 2


def test_a_seed_determines_a_new_order_for_each_pass_over_records(records, queries):
    once = sorted(query.query_id for query in queries["train"])
    builders = [simple(records, seed=seed) for seed in (3, 3, 4)]
    seen = [query_ids(builder.build_train_dataset().take(12), queries["train"]) for builder in builders]
    assert seen[0] == seen[1] != seen[2]
    assert sorted(seen[0][:22]) == sorted(seen[0][22:]) == once and seen[0][:22] != seen[0][22:]


def test_bad_seeds_are_refused(make):
    with pytest.raises(ValueError, match="`seed` must be an integer >= 0 or None, got -1."):
        make(seed=-1)


def test_signatures_mask_padding(builder, records):
    model = model_builder(builder).build()
    signatures = builder.build_signatures(model)
    serialized = list(tf.data.TFRecordDataset(records["valid"]).take(4).as_numpy_iterator())
    scores = signatures[tf.saved_model.PREDICT_METHOD_NAME](tf.constant(serialized))["outputs"].numpy()
    inputs, _ = next(iter(builder.build_valid_dataset()))
    expected, mask = model(inputs, training=False).numpy(), inputs["mask"].numpy()
    np.testing.assert_allclose(scores[mask], expected[mask], rtol=1e-6)
    assert (scores[~mask] == np.float32(models.PADDING_SCORE)).all() and (~mask).any()
