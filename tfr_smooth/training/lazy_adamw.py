"""AdamW that updates only the rows of embeddings that a step uses."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfr_smooth import _arguments, _keras


@tf.keras.utils.register_keras_serializable(package="tfr_smooth")
class LazyAdamW(tf.keras.optimizers.AdamW):
    r"""AdamW whose step for a sparse gradient changes only the rows with a gradient, and their moments.

    These rows have their own learning rate, since steps of Adam do not shrink with the number of examples of a row.
    Dense gradients have AdamW's step. A step of a table of a million vectors costs as much as the vectors of its batch;
    AdamW's costs a pass over the table and both moments. With Keras 2, it is AdamW.

    Args:
      *args: Arguments of `tf.keras.optimizers.AdamW`.
      sparse_rate: What multiplies the learning rate for sparse gradients, > 0.
      **kwargs: Further arguments of `tf.keras.optimizers.AdamW`.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import training
      >>> table = tf.keras.Variable([[1.0], [2.0], [3.0]])
      >>> optimizer = training.LazyAdamW(0.5, weight_decay=0.0)
      >>> gradient = tf.IndexedSlices(tf.constant([[1.0], [1.0]]), tf.constant([2, 2]), tf.constant([3, 1]))
      >>> optimizer.apply([gradient], [table])
      >>> table.numpy().round(3).tolist()
      [[1.0], [2.0], [2.5]]
    """

    def __init__(self, *args: Any, sparse_rate: float = 1.0, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.sparse_rate = _arguments.real("sparse_rate", sparse_rate, above=0.0)

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any = None) -> None:
        """Called by Keras: changes a variable by its gradient."""
        if not (_keras.IS_KERAS_3 and isinstance(gradient, tf.IndexedSlices)):
            arguments = () if learning_rate is None else (learning_rate,)
            super().update_step(gradient, variable, *arguments)
            return
        rows, places = tf.unique(gradient.indices)
        change = tf.math.unsorted_segment_sum(gradient.values, places, tf.size(rows))
        index = self._get_variable_index(variable)
        tables = (variable, self._momentums[index], self._velocities[index])
        value, momentum, velocity = (each if isinstance(each, tf.Variable) else each.value for each in tables)
        step, rate = tf.cast(self.iterations + 1, tf.float32), self.sparse_rate * tf.cast(learning_rate, tf.float32)
        mean = self.beta_1 * tf.gather(momentum, rows) + (1.0 - self.beta_1) * change
        square = self.beta_2 * tf.gather(velocity, rows) + (1.0 - self.beta_2) * tf.square(change)
        correction = tf.sqrt(1.0 - tf.pow(self.beta_2, step)) / (1.0 - tf.pow(self.beta_1, step))
        momentum.scatter_update(tf.IndexedSlices(mean, rows))
        velocity.scatter_update(tf.IndexedSlices(square, rows))
        value.scatter_sub(tf.IndexedSlices(rate * correction * mean / (tf.sqrt(square) + self.epsilon), rows))

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {**super().get_config(), "sparse_rate": self.sparse_rate}
