"""In the command `tfr-smooth`, and with TF_CPP_MIN_LOG_LEVEL=3, imports TensorFlow without a line on stderr.

TensorFlow writes some lines before it reads this variable.
"""

import os
import sys

if os.path.basename("".join(sys.argv[:1])).startswith("tfr-smooth") or sys.orig_argv[1:3] == ["-m", "tfr_smooth"]:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
if os.environ.get("TF_CPP_MIN_LOG_LEVEL") == "3" and "tensorflow" not in sys.modules and sys.__stderr__ is not None:
    _stderr = os.dup(2)
    try:
        with open(os.devnull, "w") as _nothing:
            os.dup2(_nothing.fileno(), 2)
        import tensorflow  # noqa: F401
    finally:
        os.dup2(_stderr, 2)
        os.close(_stderr)
