"""Runs jobs on any executor of `concurrent.futures`. Finished jobs are never run again, whichever process is killed."""

from __future__ import annotations

import collections
import concurrent.futures as cf
import contextlib
import errno
import multiprocessing
import os
import signal
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple
from unittest import mock

from experiments.jobs import StoredJob, is_done, run_job

# Read by TensorFlow at the import, so that processes have to start with it. With one process per core, one thread per
# process is faster than several.
_ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "TF_NUM_INTRAOP_THREADS": "1",
    "TF_NUM_INTEROP_THREADS": "1",
    "TF_FORCE_GPU_ALLOW_GROWTH": "true",
    # At level 2, TensorFlow reports each program that it finds in XLA's cache as an error of parsing.
    "TF_CPP_MIN_LOG_LEVEL": "3",
}
_MOST_IDLE = 3  # pools in a row without a finished job, as if processes cannot start

# Wraps an iterable to show progress: called with it, a title and the number of its elements.
Progress = Callable[[Iterable[Any], str, int], Iterable[Any]]


def no_progress(steps: Iterable[Any], title: str, total: int) -> Iterable[Any]:
    """Returns the steps, without showing progress."""
    return steps


class Failure(NamedTuple):
    """A failed job, and the traceback; for a full disk, one line with the path."""

    job: StoredJob
    message: str


def run_jobs(
    jobs: Sequence[StoredJob],
    folder: str | os.PathLike[str],
    *,
    executor: cf.Executor | None = None,
    workers: int | None = None,
    progress: Progress = no_progress,
    title: str = "jobs",
) -> list[Failure]:
    """Runs the jobs that have no result yet.

    Args:
      jobs: The jobs. They run in the order of their file names, so that those of the same data and loss are adjacent.
      folder: The folder of the study; its path must be valid in the processes of the executor.
      executor: An executor, such as `client.get_executor()` of Dask. None starts processes on this machine, with one
        thread each; a job whose process dies runs once more, alone.
      workers: The number of these processes; None for one per processor, 0 to run the jobs in this process.
      progress: Shows the progress.
      title: The title that `progress` shows.

    Returns:
      The jobs that raised an exception or whose process died; all other jobs have a result.
    """
    todo = sorted({job.file: job for job in jobs if not is_done(job, folder)}.values(), key=lambda job: job.file)
    if not todo:
        return []
    waiting, folder = collections.deque(todo), os.fspath(folder)
    ended: Iterator[tuple[StoredJob, str | None]]
    if executor is not None:
        ended = ((job, _text(error)) for job, error in _ended(waiting, folder, executor, len(todo)))
    elif workers == 0:
        ended = _in_this_process(waiting, folder)
    else:
        ended = _on_processes(waiting, folder, min(workers or os.cpu_count() or 1, len(todo)))
    failures = [Failure(job, error) for job, error in progress(ended, title, len(todo)) if error is not None]
    return failures + [Failure(job, "The executor broke before this job.") for job in waiting]


def _ended(
    waiting: collections.deque[StoredJob], folder: str, executor: cf.Executor, most: int
) -> Iterator[tuple[StoredJob, str | BaseException | None]]:
    """Yields each job that ended, with its error. At most some jobs are submitted at a time, none if it is broken."""
    running: dict[cf.Future[str | None], StoredJob] = {}
    while running or (waiting and most):
        try:
            while waiting and len(running) < most:
                running[executor.submit(_attempt, waiting[0], folder)] = waiting[0]
                waiting.popleft()
        except cf.BrokenExecutor:
            most = 0
        for future in cf.wait(running, return_when=cf.FIRST_COMPLETED).done:
            error = future.exception()
            yield running.pop(future), future.result() if error is None else error


def _in_this_process(waiting: collections.deque[StoredJob], folder: str) -> Iterator[tuple[StoredJob, str | None]]:
    while waiting:
        yield waiting[0], _attempt(waiting.popleft(), folder)


def _on_processes(
    waiting: collections.deque[StoredJob], folder: str, workers: int
) -> Iterator[tuple[StoredJob, str | None]]:
    """Like `_ended`, on processes of this machine; the jobs of a pool with a dead process run once more, alone."""
    lost, idle = collections.deque[StoredJob](), 0
    with mock.patch.dict(os.environ, _ENVIRONMENT):
        for most, last in ((workers, False), (1, True)):
            while waiting and idle < _MOST_IDLE:
                idle += 1
                with _pool(most) as pool:
                    for job, error in _ended(waiting, folder, pool, most):
                        if isinstance(error, cf.BrokenExecutor) and not last:
                            lost.append(job)
                        else:
                            idle = 0
                            yield job, _text(error)
            waiting.extend(lost)
            lost.clear()


def _text(error: str | BaseException | None) -> str | None:
    return f"{type(error).__name__}: {error}" if isinstance(error, BaseException) else error


@contextlib.contextmanager
def _pool(workers: int) -> Iterator[cf.Executor]:
    """Creates a pool of processes, which are killed after an exception such as Ctrl-C."""
    others = multiprocessing.active_children()
    pool = cf.ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), initializer=_start)
    try:
        yield pool
    except BaseException:
        for process in multiprocessing.active_children():
            if process not in others:
                process.kill()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _start() -> None:
    """Lets the process that started this one end it, also by its death."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    assert parent is not None

    def end() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=end, daemon=True).start()


def _attempt(job: StoredJob, folder: str) -> str | None:
    """Runs a job, unless it has run in the meantime; returns the message of `Failure` if it failed, else None."""
    try:
        if not is_done(job, folder):
            run_job(job, folder)
    except Exception as error:
        is_full = any(os.strerror(code) in str(error) for code in (errno.ENOSPC, errno.EDQUOT))  # TensorFlow's, too
        return " ".join(str(error).split()) if is_full else traceback.format_exc()
    return None
