"""The dataset builders: padding, passes, sharding, and equal batches from records and LETOR text."""

import collections

import numpy as np
import pytest
import tensorflow as tf

from tests import helpers
from tfr_smooth import data, models

tfr = helpers.tf_ranking(module=True)
from tfr_smooth import tf_ranking  # noqa: E402

SCHEMA = data.ElwcSchema(features="custom_features_{}")
SPEC = SCHEMA.feature_spec(3)


def spec(default):
    return tf.io.FixedLenFeature([1], tf.float32, default)


def hparams(files, **arguments):
    return tfr.keras.pipeline.DatasetHparams(
        files["train"], files["valid"], train_batch_size=4, valid_batch_size=4, **arguments
    )


def simple(files, default=0.0, mask="mask", **arguments):
    return tf_ranking.SimpleDatasetBuilder({}, SPEC, mask, ("utility", spec(default)), hparams(files), **arguments)


def query_ids(dataset, queries):
    """The ids of the queries of a dataset, identified by their first feature."""
    by_value = {float(query.features[0, 0]): query.query_id for query in queries}
    first = [x for features, *_ in dataset for x in features["custom_features_1"].numpy()[:, 0, 0]]
    return [by_value[float(value)] for value in first]


@pytest.mark.parametrize("default", [0.0, -1.0, 3.0, None])
def test_padding_has_label_minus_one_for_any_default_of_the_spec(default, records, queries):
    batches = simple(records, default).build_valid_dataset()
    rows = [row for features, y in batches for row in zip(features["mask"].numpy(), y.numpy(), strict=True)]
    assert len(rows) == len(queries["valid"])
    for (mask, labels), query in zip(rows, queries["valid"], strict=True):
        np.testing.assert_array_equal(labels[mask], query.labels)
        assert (labels[~mask] == -1.0).all()


def test_tf_rankings_own_builder_turns_padding_into_documents(records):
    """The reason for the test above. If this one fails, TF-Ranking has fixed it."""
    builder = tfr.keras.pipeline.SimpleDatasetBuilder({}, SPEC, "mask", ("utility", spec(0.0)), hparams(records))
    features, labels = next(iter(builder.build_valid_dataset()))
    assert (labels.numpy()[~features["mask"].numpy()] == 0.0).all()


def test_documents_without_a_label_get_the_default_or_raise_an_error(tmp_path):
    def example(**features):
        values = {n: tf.train.Feature(float_list=tf.train.FloatList(value=[v])) for n, v in features.items()}
        return tf.train.Example(features=tf.train.Features(feature=values)).SerializeToString()

    record = data.elwc._message_class()(examples=[example(utility=2.0), example(custom_features_1=1.0)])
    with tf.io.TFRecordWriter(str(tmp_path / "r")) as writer:
        writer.write(record.SerializeToString())
    files = {"train": str(tmp_path / "r"), "valid": str(tmp_path / "r")}
    ((_, labels),) = simple(files, 0.0).build_valid_dataset()
    assert labels.numpy().tolist() == [[2.0, 0.0]]
    with pytest.raises(tf.errors.InvalidArgumentError, match="A document without a label"):
        list(simple(files, None).build_valid_dataset())


@pytest.mark.parametrize(
    ("mask", "label", "problem"),
    [
        (None, ("utility", spec(0.0)), "since padding would become documents, got the default 0.0 for 'utility'."),
        (None, ("utility", spec(None)), "since padding would become documents, got the default None for 'utility'."),
        ("mask", ("utility", tf.io.FixedLenFeature([], tf.float32)), "must have the shape (1,), got [] for 'utility'."),
        ("mask", ("utility", tf.io.VarLenFeature(tf.float32)), "must be a pair of a name and a tf.io.FixedLenFeature"),
        ("mask", ["utility"], "must be a pair of a name and a tf.io.FixedLenFeature"),
    ],
)
def test_bad_label_specs_are_refused(mask, label, problem, records):
    simple, multi = tf_ranking.SimpleDatasetBuilder, tf_ranking.MultiLabelDatasetBuilder
    for builder, given in ((simple, label), (multi, {"t": label})):
        with pytest.raises(ValueError) as raised:
            builder({}, SPEC, mask, given, hparams(records))
        assert problem in str(raised.value)


def test_a_mask_is_not_needed_with_a_negative_default(records):
    for (_, labels), (_, expected) in zip(
        simple(records, -1.0, mask=None).build_valid_dataset(), simple(records).build_valid_dataset(), strict=True
    ):
        np.testing.assert_array_equal(labels, expected)


def test_weights_and_several_labels_are_read(records):
    pair = ("utility", spec(0.0))
    both = {"one": pair, "two": ("custom_features_1", spec(0.0))}
    features = {name: SPEC[name] for name in ("custom_features_2",)}
    weight = ("custom_features_3", spec(1.0))
    builder = tf_ranking.MultiLabelDatasetBuilder({}, features, "mask", both, hparams(records), weight)
    for (inputs, labels, weights), (all_inputs, expected) in zip(
        builder.build_valid_dataset(), simple(records).build_valid_dataset(), strict=True
    ):
        mask = inputs["mask"].numpy()
        np.testing.assert_array_equal(labels["one"], expected)
        np.testing.assert_array_equal(
            labels["two"], np.where(mask, all_inputs["custom_features_1"].numpy()[..., 0], -1.0)
        )
        np.testing.assert_array_equal(weights.numpy()[mask], all_inputs["custom_features_3"].numpy()[mask][:, 0])


@pytest.mark.parametrize("kind", ["records", "letor"])
def test_validation_is_one_pass_in_order_and_training_shuffles_each_pass(kind, records, letor, queries):
    """Each pass contains every list once."""
    builder = simple(records)
    if kind == "letor":
        builder = tf_ranking.LetorDatasetBuilder(hparams(letor), features="custom_features_{}")
    valid = builder.build_valid_dataset()
    assert valid.cardinality() == 4
    assert query_ids(valid, queries["valid"]) == [query.query_id for query in queries["valid"]]
    assert builder.train_batches() == 6
    train = builder.build_train_dataset()
    assert train.cardinality() == tf.data.INFINITE_CARDINALITY
    seen = query_ids(train.take(12), queries["train"])
    once = [query.query_id for query in queries["train"]]
    assert sorted(seen[:22]) == sorted(seen[22:]) == sorted(once) and seen[:22] != seen[22:]


@pytest.mark.parametrize("part", ["train", "valid"])
def test_two_workers_share_one_file(part, records, letor, queries):
    """As `tf.distribute` shards a dataset. FILE, the default policy, fails with one file."""
    from tensorflow.python.data.experimental.ops import distribute

    for builder in (simple(records), tf_ranking.LetorDatasetBuilder(hparams(letor), features="custom_features_{}")):
        dataset = builder.build_valid_dataset()
        policy = tf.data.experimental.AutoShardPolicy.DATA
        assert getattr(builder, f"build_{part}_dataset")().options().experimental_distribute.auto_shard_policy == policy
        shares = [query_ids(distribute._AutoShardDataset(dataset, 2, worker), queries["valid"]) for worker in (0, 1)]
        assert min(map(len, shares)) > 0
        assert sorted(sum(shares, [])) == sorted(query.query_id for query in queries["valid"])


@pytest.mark.parametrize(
    "arguments", [{}, {"list_size": 3}, {"valid_list_size": 2}, {"convert_labels_to_binary": True}]
)
def test_letor_text_yields_the_batches_of_the_records(arguments, letor, tmp_path):
    files = {part: str(tmp_path / part) for part in letor}
    for part, path in files.items():
        data.letor_to_tfrecord(letor[part], path, schema=SCHEMA, num_features=3)
    theirs = tf_ranking.SimpleDatasetBuilder({}, SPEC, "mask", ("utility", spec(0.0)), hparams(files, **arguments))
    ours = tf_ranking.LetorDatasetBuilder(hparams(letor, **arguments), features="custom_features_{}")
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
    one = tf_ranking.LetorDatasetBuilder(hparams(letor))
    each = tf_ranking.LetorDatasetBuilder(hparams(letor), features="f{}")
    for (vector, _), (columns, _) in zip(one.build_valid_dataset(), each.build_valid_dataset(), strict=True):
        np.testing.assert_array_equal(vector["features"], tf.concat([columns[f"f{i}"] for i in (1, 2, 3)], 2))


@pytest.mark.parametrize("first", [0, 1, 5, 6, 13])
@pytest.mark.parametrize("kind", ["records", "letor"])
def test_a_seeded_dataset_resumes_at_first_batch(kind, first, records, letor, queries):
    if kind == "records":
        builder = simple(records, seed=3)
    else:
        builder = tf_ranking.LetorDatasetBuilder(hparams(letor), features="custom_features_{}", seed=3)
    train = builder.build_train_dataset()
    assert train.cardinality() == tf.data.INFINITE_CARDINALITY
    whole = query_ids(train.skip(first).take(4), queries["train"])
    assert query_ids(builder.build_train_dataset(first_batch=first).take(4), queries["train"]) == whole
    assert max(collections.Counter(whole).values()) <= 2


def test_a_seed_determines_a_new_order_for_each_pass_over_records(records, queries):
    once = sorted(query.query_id for query in queries["train"])
    seen = [
        query_ids(simple(records, seed=seed).build_train_dataset().take(12), queries["train"]) for seed in (3, 3, 4)
    ]
    assert seen[0] == seen[1] != seen[2]
    assert sorted(seen[0][:22]) == sorted(seen[0][22:]) == once and seen[0][:22] != seen[0][22:]


@pytest.mark.parametrize("kind", ["records", "letor"])
def test_bad_seeds_are_refused(kind, records, letor):
    with pytest.raises(ValueError, match="`seed` must be an integer >= 0 or None, got -1."):
        simple(records, seed=-1) if kind == "records" else tf_ranking.LetorDatasetBuilder(hparams(letor), seed=-1)


def test_signatures_mask_padding(records, queries):
    builder = simple(records)
    model = tfr.keras.model.ModelBuilder(
        tfr.keras.model.FeatureSpecInputCreator({}, SPEC),
        tfr.keras.model.PreprocessorWithSpec(),
        tfr.keras.model.DNNScorer(hidden_layer_dims=[4], output_units=1),
        mask_feature_name="mask",
    ).build()
    signatures = builder.build_signatures(model)
    serialized = list(tf.data.TFRecordDataset(records["valid"]).take(4).as_numpy_iterator())
    scores = signatures[tf.saved_model.PREDICT_METHOD_NAME](tf.constant(serialized))["outputs"].numpy()
    inputs, _ = next(iter(builder.build_valid_dataset()))
    expected, mask = model(inputs, training=False).numpy(), inputs["mask"].numpy()
    np.testing.assert_allclose(scores[mask], expected[mask], rtol=1e-6)
    assert (scores[~mask] == np.float32(models.PADDING_SCORE)).all() and (~mask).any()
