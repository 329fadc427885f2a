"""Optional packages: imported where they are used, with an error that names the extra that installs them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator


@contextlib.contextmanager
def needed(package: str, *, extra: str, by: str) -> Iterator[None]:
    """Runs import statements; says how to install `package` for `by` where they fail.

    Raises:
      ImportError: One of the imports failed.

    Example:
      >>> with needed("matplotlib", extra="evaluation", by="`plot`"):
      ...     import no_such_module
      Traceback (most recent call last):
      ImportError: `plot` needs matplotlib: pip install 'tfr_smooth[evaluation]'
    """
    try:
        yield
    except ImportError as error:
        raise ImportError(f"{by} needs {package}: pip install 'tfr_smooth[{extra}]'") from error
