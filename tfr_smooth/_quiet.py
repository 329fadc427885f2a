"""Imports TensorFlow without a line on stderr, and hides its log, unless TF_CPP_MIN_LOG_LEVEL is set.

TensorFlow writes some lines before it reads this variable.
"""

import os
import sys

if os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3") == "3" and "tensorflow" not in sys.modules and sys.__stderr__:
    _stderr = os.dup(2)
    try:
        with open(os.devnull, "w") as _nothing:
            os.dup2(_nothing.fileno(), 2)
        import tensorflow  # noqa: F401
    finally:
        os.dup2(_stderr, 2)
        os.close(_stderr)
