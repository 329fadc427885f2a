"""The version, alone in its file so that packaging reads it without importing TensorFlow."""

__version__ = "0.1.0.dev0"
