"""The scores of exports, as a client of TensorFlow computes them."""

import os

import numpy as np
import pandas as pd
import tensorflow as tf

from tfr_smooth.columns.kinds import raw_array
from tfr_smooth.data.reading import checks


def scores_of(path, ranker, frame, qid):
    """Returns what the signature `rank` of the export of a `Ranker` of a table computes for the rows of a table."""
    signature = tf.saved_model.load(os.fspath(path)).signatures["rank"]
    lists, table = pd.factorize(np.asarray(qid))[0], checks.as_arrow(frame)
    order = np.argsort(lists, kind="stable")
    inputs = {"mask": tf.sequence_mask(np.bincount(lists))}
    for column in ranker.features_.columns:
        values = raw_array(column, checks.feature(checks.Where(column.name), table[column.name]))[order]
        rows = tf.RaggedTensor.from_value_rowids(tf.constant(values, column.dtype), lists[order])
        is_of_list = signature.structured_input_signature[1][column.name].shape.rank == values.ndim
        inputs[column.name] = rows[:, :1].to_tensor()[:, 0] if is_of_list else rows.to_tensor()
    scores = np.zeros(len(lists), np.float32)
    scores[order] = tf.boolean_mask(signature(**inputs)["scores"], inputs["mask"])
    return scores
