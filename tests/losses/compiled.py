"""Takes three training steps with each loss that its arguments name, compiled by XLA as a whole.

Prints one line for each loss whose second or third step XLA compiled again, by the programs that it writes to a folder.
test_modes.py runs it in separate processes, because this setting of XLA is global.
"""

import os
import pathlib
import sys
import tempfile

import tensorflow as tf

from tests.helpers import modes
from tfr_smooth import losses

FOLDER = pathlib.Path(tempfile.mkdtemp())
# XLA reads it when it compiles for the first time.
os.environ["XLA_FLAGS"] = f"--xla_dump_to={FOLDER} --xla_dump_hlo_as_text --xla_dump_max_hlo_modules=-1"


def main():
    labels, scores = map(tf.constant, modes.batch())
    for name in sys.argv[1:]:
        weights = tf.Variable(tf.zeros_like(scores))
        loss = losses.get(name)

        @tf.function(jit_compile=True)
        def step(loss=loss, weights=weights):
            with tf.GradientTape() as tape:
                value = loss(labels, scores + weights)
            weights.assign_sub(0.1 * tape.gradient(value, weights))
            return value

        programs = []
        for _ in range(3):
            step()
            programs.append(len([*FOLDER.glob("*before_optimizations*")]))
        if programs[2] > programs[0]:
            print(name, programs)
        for path in FOLDER.iterdir():
            path.unlink()
        if programs[0] == 0:
            print(name, "was not compiled")


if __name__ == "__main__":
    main()
