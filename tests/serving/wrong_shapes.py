"""Sends inputs of wrong shapes to all signatures of a SavedModel; a program, as a failed check ends the process."""

import sys

import tensorflow as tf


def accepted(folder):
    """Returns the requests that are answered: the signature, the input and its shape."""
    found = []
    for name, signature in tf.saved_model.load(folder).signatures.items():
        specs = signature.structured_input_signature[1]
        right = {key: [2 if size is None else size for size in spec.shape] for key, spec in specs.items()}
        for key, shape in right.items():
            for wrong in [shape[1:], [1, *shape], *([[3, *shape[1:]]] if len(specs) > 1 else [])]:
                shapes = {**right, key: wrong}
                try:
                    signature(**{key: tf.zeros(shapes[key], spec.dtype) for key, spec in specs.items()})
                    found.append((name, key, wrong))
                except tf.errors.InvalidArgumentError:
                    pass
    return found


if __name__ == "__main__":
    print(accepted(sys.argv[1]))
