"""What the tests of the readers share: files, comparisons of batches, and arguments of the readers."""

import itertools

import numpy as np
import pytest
import tensorflow as tf


def letor_file(path, lengths, *, start=0, width=3):
    """Writes lists of these lengths: feature 1 is the number of the query, feature 2 the position in the list."""
    with open(path, "w") as file:
        for query, length in enumerate(lengths, start):
            for place in range(length):
                file.write(f"{place % 3} qid:{query} 1:{query} 2:{place} {width}:0.5 #docid = d{place}\n")
    return str(path)


def order(dataset):
    """The queries of each batch, from feature 1."""
    return [inputs["features"].numpy()[:, 0, 0].astype(int).tolist() for inputs, _ in dataset]


def flat(dataset):
    """The queries of all batches."""
    return list(itertools.chain(*order(dataset)))


def as_numpy(dataset):
    return [tf.nest.map_structure(np.asarray, batch) for batch in dataset]


def assert_same_batches(found, expected):
    """The datasets have the same elements and specs."""
    assert found.element_spec == expected.element_spec
    found, expected = as_numpy(found), as_numpy(expected)
    assert len(found) == len(expected) > 0
    for one, other in zip(found, expected, strict=True):
        tf.nest.map_structure(np.testing.assert_array_equal, one, other)


def assert_refused(message, call, *arguments, **kwargs):
    """The call raises exactly this `ValueError`."""
    with pytest.raises(ValueError) as raised:
        call(*arguments, **kwargs)
    assert str(raised.value) == message


def number(*values):
    return tf.train.Feature(float_list=tf.train.FloatList(value=values))


def text(*values):
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))


def integer(*values):
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))


def example(features):
    return tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()
