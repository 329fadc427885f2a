"""The version, in a separate file so that packaging can read it without importing TensorFlow."""

__version__ = "1.0.0.dev0"
