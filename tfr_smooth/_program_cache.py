"""Programs that XLA compiled, kept on disk for other processes."""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import tempfile
import time
from pathlib import Path

import tensorflow as tf
from google.protobuf import empty_pb2, message

from tfr_smooth import _files
from tfr_smooth._version import __version__

_FLAG = "--tf_xla_persistent_cache_directory"
# Programs for GPUs depend on the GPU, and looking for GPUs would make TensorFlow read its flags.
_ONLY_CPU = "--tf_xla_persistent_cache_device_types=CPU"
# With this flag, TensorFlow 2.15 cannot compile for CPUs, and programs loaded by TensorFlow 2.19 return wrong values.
_OLDEST_TENSORFLOW = (2, 20)
_SECONDS_KEPT = 30 * 24 * 3600
# XLA fails if it cannot write a program. No program is this large.
_BYTES_FREE = 2**20


def cache_programs(folder: str | os.PathLike[str] | None = None) -> Path | None:
    """Keeps the programs that XLA compiles on disk, so that other processes load them instead of compiling them again.

    Loading a program takes a tenth of the time of compiling it. Call this function right after the imports: TensorFlow
    reads the setting once, when it looks for devices or runs its first operation. Processes that this process starts
    inherit the setting, and several processes may run at the same time. Programs are kept for 30 days and apart for
    each processor model and version of TensorFlow and of this package. Programs for GPUs are not kept.

    The function does nothing if the environment variable `TFR_SMOOTH_PROGRAMS` is "off", if `TF_XLA_FLAGS` already sets
    a folder for compiled programs, before TensorFlow 2.20, and if the folder is not writable.

    Args:
      folder: The folder. None uses the value of the environment variable `TFR_SMOOTH_PROGRAMS`, or else
        `tfr_smooth/programs` in the user's cache folder (`XDG_CACHE_HOME`, by default `~/.cache`).

    Returns:
      The subfolder that has the programs for this processor and these versions; None if the function did nothing.

    Example:
      >>> import tempfile
      >>> import tfr_smooth
      >>> programs = tfr_smooth.cache_programs(tempfile.mkdtemp())
    """
    flags, setting = os.environ.get("TF_XLA_FLAGS", ""), os.environ.get("TFR_SMOOTH_PROGRAMS", "")
    version = tuple(map(int, tf.__version__.split(".")[:2]))
    # Instead of flags, the variable may contain the path of a file with flags.
    if setting == "off" or version < _OLDEST_TENSORFLOW or _FLAG in flags or (flags and not flags.startswith("-")):
        return None
    programs = Path(folder or setting or _files.user_cache("programs")).absolute() / _key(flags)
    try:
        programs.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=programs) as file:
            file.write(bytes(_BYTES_FREE))
    except OSError:
        return None
    for path in programs.parent.glob("*/*"):
        with contextlib.suppress(OSError):  # such as a file that another process has removed
            is_program = path.parent == programs and path.suffix == ".pb"
            if path.stat().st_mtime < time.time() - _SECONDS_KEPT or (is_program and not _is_sound(path)):
                path.unlink()
                _hash_of(path).unlink(missing_ok=True)
    os.environ["TF_XLA_FLAGS"] = f'{flags} {_FLAG}="{programs}" {_ONLY_CPU}'.strip()
    return programs


def _is_sound(path: Path) -> bool:
    """Whether a program has the hash of an earlier call, or, if it is new, is a protocol buffer.

    After a power failure, a file may be empty or cut off, where XLA would fail. Later damage may give wrong results.
    """
    content, kept = path.read_bytes(), _hash_of(path)
    digest = hashlib.sha256(content).hexdigest()
    if kept.exists():
        return kept.read_text(encoding="utf-8") == digest
    with contextlib.suppress(message.DecodeError):
        empty_pb2.Empty().ParseFromString(content)  # all fields are unknown ones
        _files.write_text(kept, [digest])
        return bool(content)
    return False


def _hash_of(path: Path) -> Path:
    return path.with_suffix(".sha256")


def _key(flags: str) -> str:
    """Returns a folder name for all that a program depends on beyond the computation, which TensorFlow compares."""
    cpu, names = Path("/proc/cpuinfo"), ("model name", "CPU part", "flags", "Features")
    if cpu.exists():
        processor = sorted({line for line in cpu.read_text("utf-8").splitlines() if line.startswith(names)})
    else:  # not Linux
        processor = [platform.processor(), platform.node()]
    parts = flags, os.environ.get("XLA_FLAGS", ""), tf.version.GIT_VERSION, platform.machine(), processor
    return f"{tf.__version__}-{__version__}-{hashlib.sha256(repr(parts).encode()).hexdigest()[:16]}"
