"""Datasets of Python generators."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf


def dataset_of(generator: Callable[[], Iterator[Any]], signature: Any) -> tf.data.Dataset:
    """Returns `tf.data.Dataset.from_generator`, but TensorFlow does not keep the generator until the process ends."""
    kept = weakref.ref(generator)
    dataset = tf.data.Dataset.from_generator(lambda: kept()(), output_signature=signature)  # type: ignore[misc]
    dataset._generator = generator
    return dataset
