"""AdamW that updates only the rows of embeddings that a step uses, and sets weights without a clear gradient to 0."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from tfr_smooth import _arguments, _keras


@tf.keras.utils.register_keras_serializable(package="tfr_smooth")
class LazyAdamW(tf.keras.optimizers.AdamW):
    r"""AdamW whose step for a sparse gradient changes only the rows with a gradient, and their moments.

    These rows have their own learning rate, since steps of Adam do not shrink with the number of examples of a row.
    Dense gradients have AdamW's step. A step of a table of a million vectors costs as much as the vectors of its batch;
    AdamW's costs a pass over the table and both moments. With Keras 2, all rows have AdamW's step.

    Variables in `l1` get closer to 0 by a part of the learning rate after each step, and stay there (the proximal step
    of an L1 penalty, decoupled from the gradient as weight decay is). Since Adam's steps have the length of the rate
    where gradients agree, and are shorter where they do not, this removes what does not stand out from noise.

    Args:
      *args: Arguments of `tf.keras.optimizers.AdamW`.
      sparse_rate: What multiplies the learning rate for sparse gradients, > 0.
      by_gap: Whether a row with a sparse gradient gets at once what AdamW does in the steps until the next one, if
        these are many: the second moment decays by their number, and all momentum is applied.
      l1: What multiplies the learning rate for the L1 penalty, >= 0, by parts of the names of variables.
      **kwargs: Further arguments of `tf.keras.optimizers.AdamW`.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import training
      >>> table = tf.Variable([[1.0], [2.0], [3.0]])
      >>> optimizer = training.LazyAdamW(0.5, weight_decay=0.0)
      >>> gradient = tf.IndexedSlices(tf.constant([[1.0], [1.0]]), tf.constant([2, 2]), tf.constant([3, 1]))
      >>> _ = optimizer.apply_gradients([(gradient, table)])
      >>> table.numpy().round(3).tolist()
      [[1.0], [2.0], [2.5]]
    """

    def __init__(
        self,
        *args: Any,
        sparse_rate: float = 1.0,
        by_gap: bool = False,
        l1: Mapping[str, float] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.by_gap = _arguments.boolean("by_gap", by_gap)
        given = _arguments.instance("l1", l1 or {}, Mapping)
        self.l1 = {name: _arguments.real("l1", value, least=0.0) for name, value in given.items()}
        self.sparse_rate = _arguments.real("sparse_rate", sparse_rate, above=0.0)

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any = None) -> None:
        """Called by Keras: changes a variable by its gradient."""
        if not (_keras.IS_KERAS_3 and isinstance(gradient, tf.IndexedSlices)):
            arguments = () if learning_rate is None else (learning_rate,)
            super().update_step(gradient, variable, *arguments)
            for name, value in self.l1.items():
                if name in variable.name:
                    rate = tf.cast(self.learning_rate if learning_rate is None else learning_rate, variable.dtype)
                    now = tf.convert_to_tensor(variable)
                    variable.assign(tf.sign(now) * tf.nn.relu(tf.abs(now) - value * rate))
            return
        rows, places = tf.unique(gradient.indices)
        change = tf.math.unsorted_segment_sum(gradient.values, places, tf.size(rows))
        index = self._get_variable_index(variable)
        tables = (variable, self._momentums[index], self._velocities[index])
        value, momentum, velocity = (table if isinstance(table, tf.Variable) else table.value for table in tables)
        step, rate = tf.cast(self.iterations + 1, tf.float32), self.sparse_rate * tf.cast(learning_rate, tf.float32)
        before, square = tf.gather(momentum, rows), tf.gather(velocity, rows)
        # The mean step in which AdamW applies this gradient: in the first ones, the correction falls to the half.
        late = step + self.beta_1 / (1.0 - self.beta_1) if self.by_gap else step
        correction = tf.sqrt(1.0 - tf.pow(self.beta_2, late)) / (1.0 - tf.pow(self.beta_1, late))
        if self.by_gap:  # In place of the momentum, which is all applied, there is the step of the last gradient.
            mean, direction = tf.fill(tf.shape(before), step), change
            square *= tf.pow(self.beta_2, step - before)
        else:
            mean = self.beta_1 * before + (1.0 - self.beta_1) * change
            direction = mean
            square *= self.beta_2
        square += (1.0 - self.beta_2) * tf.square(change)
        momentum.scatter_update(tf.IndexedSlices(mean, rows))
        velocity.scatter_update(tf.IndexedSlices(square, rows))
        value.scatter_sub(tf.IndexedSlices(rate * correction * direction / (tf.sqrt(square) + self.epsilon), rows))

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {**super().get_config(), "sparse_rate": self.sparse_rate, "by_gap": self.by_gap, "l1": self.l1}
