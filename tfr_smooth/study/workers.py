"""Runs jobs in worker processes. Finished jobs are never run again, whichever process is killed."""

from __future__ import annotations

import collections
import contextlib
import multiprocessing
import os
import signal
import traceback
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import NamedTuple

from tfr_smooth.study.jobs import StoredJob, is_done, run_job

# One thread per process: with one process per core, this is faster than several threads.
_ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "TF_NUM_INTRAOP_THREADS": "1",
    "TF_NUM_INTEROP_THREADS": "1",
    "TF_FORCE_GPU_ALLOW_GROWTH": "true",
}


class Failure(NamedTuple):
    """A failed job.

    Attributes:
      job: The job.
      message: The traceback, or the exit code of the process.

    Example:
      >>> from tfr_smooth import study
      >>> job = study.Job(study.Dataset("mine", {"Fold1": {}}), "Fold1", "random", {})
      >>> study.Failure(job, "The process ended with exit code -9.").job.ranker
      'random'
    """

    job: StoredJob
    message: str


class _Worker(NamedTuple):
    process: BaseProcess
    connection: Connection


def run_jobs(
    jobs: Sequence[StoredJob],
    folder: str | os.PathLike[str],
    *,
    workers: int = 1,
    progress: Callable[[StoredJob], object] = lambda job: None,
) -> list[Failure]:
    """Runs the jobs that have no result yet.

    Jobs with the same slow preparation, such as the graph of a loss, run one after another in the same worker. If this
    process is killed, each worker finishes its job and exits.

    Args:
      jobs: The jobs.
      folder: The folder of the study.
      workers: Number of worker processes, >= 0, each with one thread; 0 runs all jobs in this process.
      progress: Called with each job that finished or failed.

    Returns:
      The jobs that raised an exception or whose process died; all other jobs have a result.

    Example:
      >>> import tempfile
      >>> from tfr_smooth import data, study
      >>> folder = tempfile.mkdtemp()
      >>> files = data.write_synthetic_letor(folder, num_queries=(4, 2, 2))
      >>> dataset = study.one_split(files["train"], files["valid"], files["test"])
      >>> jobs = [study.Job(dataset, "Fold1", "random", {}, seed=seed) for seed in range(2)]
      >>> study.run_jobs(jobs, folder, workers=0)  # Returns the jobs that failed.
      []
    """
    queue = _Queue(job for job in {job.file: job for job in jobs}.values() if not is_done(job, folder))
    failures: list[Failure] = []
    affinity = None
    while queue and workers == 0:
        job = queue.take(affinity)
        affinity = job.affinity
        message = _attempt(job, folder)
        if message is not None:
            failures.append(Failure(job, message))
        progress(job)
    running: dict[Connection, tuple[_Worker, StoredJob]] = {}
    idle: list[_Worker | None] = [None] * min(workers, len(queue))
    last: dict[Connection, str] = {}
    try:
        while queue or running:
            while queue and idle:
                worker = idle.pop() or _start(folder)
                job = queue.take(last.get(worker.connection))
                last[worker.connection] = job.affinity
                with contextlib.suppress(OSError):  # `wait` detects a dead worker.
                    worker.connection.send(job)
                running[worker.connection] = worker, job
            for connection in wait(list(running)):
                assert isinstance(connection, Connection)
                worker, job = running.pop(connection)
                try:
                    message = connection.recv()
                    idle.append(worker)
                except (EOFError, OSError):
                    worker.process.join()
                    message = f"The process ended with exit code {worker.process.exitcode}."
                    idle.append(None)
                if message is not None:
                    failures.append(Failure(job, message))
                progress(job)
        for idle_worker in idle:
            if idle_worker is not None:
                idle_worker.connection.close()
                idle_worker.process.join()
    finally:
        for worker, _ in running.values():
            worker.process.kill()
            worker.process.join()
    return failures


class _Queue:
    """The pending jobs, grouped by affinity."""

    def __init__(self, jobs: Iterator[StoredJob]) -> None:
        self._groups: dict[str, collections.deque[StoredJob]] = {}
        self._new: collections.deque[str] = collections.deque()
        for job in jobs:
            if job.affinity not in self._groups:
                self._new.append(job.affinity)
            self._groups.setdefault(job.affinity, collections.deque()).append(job)

    def __len__(self) -> int:
        return sum(map(len, self._groups.values()))

    def take(self, affinity: str | None) -> StoredJob:
        """Returns a job with this affinity if one is left; else one of a new group, or of the largest group left."""
        if affinity not in self._groups:
            affinity = self._new.popleft() if self._new else max(self._groups, key=lambda key: len(self._groups[key]))
        assert affinity is not None
        job = self._groups[affinity].popleft()
        if not self._groups[affinity]:
            del self._groups[affinity]
        return job


def _start(folder: str | os.PathLike[str]) -> _Worker:
    context = multiprocessing.get_context("spawn")
    own, other = context.Pipe()
    process = context.Process(target=_serve, args=(other, os.fspath(folder)), daemon=True)
    with _environment(), _interrupts_blocked():
        process.start()
    other.close()  # The connection must close when the worker exits.
    return _Worker(process, own)


@contextlib.contextmanager
def _environment() -> Iterator[None]:
    settings = {**_ENVIRONMENT, "TF_CPP_MIN_LOG_LEVEL": os.environ.get("TF_CPP_MIN_LOG_LEVEL", "2")}
    before = {name: os.environ.get(name) for name in settings}
    os.environ.update(settings)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextlib.contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Hides Ctrl-C from a process that starts here, also before it can ignore it; this process sees it afterwards."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _serve(connection: Connection, folder: str) -> None:
    """Runs the jobs received until the connection closes, which also happens when the parent process dies."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # The parent process ends this one.
    with contextlib.suppress(EOFError, OSError):
        while True:
            connection.send(_attempt(connection.recv(), folder))


def _attempt(job: StoredJob, folder: str | os.PathLike[str]) -> str | None:
    """Runs a job; returns the traceback if it failed, else None."""
    try:
        run_job(job, folder)
    except Exception:
        return traceback.format_exc()
    return None
