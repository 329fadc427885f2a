"""Imports of optional packages, with an error that names the extra that installs them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator


@contextlib.contextmanager
def needed(package: str, *, extra: str, by: str) -> Iterator[None]:
    """Adds installation instructions to an `ImportError` raised by the import statements in its body.

    Args:
      package: Name of the optional package.
      extra: Extra of tfr_smooth that installs the package.
      by: What needs the package, for the message.

    Raises:
      ImportError: If one of the imports fails.

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
