"""Runs the first snippet of the README of the installed wheel: `python -I tools/quickstart.py`.

-I leaves the source tree out of Python's path, so that the wheel has to bring all that the snippet needs.
"""

import importlib.metadata
import pathlib
import re
import sys

import tfr_smooth

metadata = importlib.metadata.metadata("tfr_smooth")
assert pathlib.Path(tfr_smooth.__file__).is_relative_to(sys.prefix), f"not the wheel: {tfr_smooth.__file__}"
assert tfr_smooth.__version__ == metadata["Version"]
exec(re.search(r"^```python\n(.*?)^```", metadata.get_payload(), re.M | re.S)[1])
print(f"The quickstart of tfr_smooth {tfr_smooth.__version__} runs on Python {sys.version.split()[0]}.")
