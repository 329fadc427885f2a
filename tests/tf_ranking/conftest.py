"""Queries, records and LETOR files shared by the tests of `tfr_smooth.tf_ranking`."""

import numpy as np
import pytest
import tensorflow as tf

from tfr_smooth.data import elwc
from tfr_smooth.data.letor_parser import Query

NUM_FEATURES = 3
SCHEMA = elwc.ElwcSchema(features="custom_features_{}")


def make_queries(count, seed):
    """Queries of 1 to 6 documents, some without a relevant one. The first feature determines the labels."""
    random = np.random.RandomState(seed)
    queries = []
    for number in range(count):
        features = random.normal(size=(random.randint(1, 7), NUM_FEATURES)).astype(np.float32)
        labels = np.floor(np.clip(features[:, 0] + 1.0, 0.0, 3.0)).astype(np.float32)
        queries.append(Query(b"q%d" % number, features, labels, [b""] * len(labels)))
    return queries


def write_records(path, queries):
    with tf.io.TFRecordWriter(str(path)) as writer:
        for query in queries:
            writer.write(elwc.encode_query(query, SCHEMA))
    return str(path)


def write_letor(path, queries):
    lines = [
        " ".join([f"{label:g}", "qid:" + query.query_id.decode(), *(f"{i}:{v!r}" for i, v in enumerate(row, 1))])
        for query in queries
        for label, row in zip(query.labels, query.features.tolist(), strict=True)
    ]
    path.write_text("\n".join(lines) + "\n")
    return str(path)


@pytest.fixture
def builder(records):
    from tests.tf_ranking import pipelines  # imports TF-Ranking, which only one stack has

    return pipelines.simple(records)


@pytest.fixture(scope="session")
def queries():
    return {"train": make_queries(22, seed=1), "valid": make_queries(13, seed=2)}


@pytest.fixture(scope="session")
def records(queries, tmp_path_factory):
    folder = tmp_path_factory.mktemp("records")
    return {part: write_records(folder / f"{part}.tfrecord", lists) for part, lists in queries.items()}


@pytest.fixture(scope="session")
def letor(queries, tmp_path_factory):
    folder = tmp_path_factory.mktemp("letor")
    return {part: write_letor(folder / f"{part}.txt", lists) for part, lists in queries.items()}
