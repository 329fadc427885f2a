"""Runs jobs in processes, so that whichever of these is killed, no finished job is run again."""

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

from tfr_smooth.study.jobs import Job, is_done, run_job

# One thread per process: as many processes as cores are then faster than threads would be.
_ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "TF_NUM_INTRAOP_THREADS": "1",
    "TF_NUM_INTEROP_THREADS": "1",
    "TF_CPP_MIN_LOG_LEVEL": "2",
    "TF_FORCE_GPU_ALLOW_GROWTH": "true",
}


class Failure(NamedTuple):
    """A job without a result, and why."""

    job: Job
    message: str


class _Worker(NamedTuple):
    process: BaseProcess
    connection: Connection


def run_jobs(
    jobs: Sequence[Job],
    folder: str | os.PathLike[str],
    *,
    workers: int = 1,
    progress: Callable[[Job], object] = lambda job: None,
) -> list[Failure]:
    """Runs the jobs that have no result yet.

    A worker takes jobs that share what is slow to prepare, such as the graph of a loss, one after another. If this
    process is killed, each worker finishes its job and ends.

    Args:
      jobs: The jobs.
      folder: The folder of the study.
      workers: The number of processes, each with one thread; 0 runs all jobs in this process.
      progress: Called for each job that ends.

    Returns:
      The jobs that raised an exception or whose process died; all others have a result.
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
    running: dict[Connection, tuple[_Worker, Job]] = {}
    idle: list[_Worker | None] = [None] * min(workers, len(queue))
    last: dict[Connection, str] = {}
    try:
        while queue or running:
            while queue and idle:
                worker = idle.pop() or _start(folder)
                job = queue.take(last.get(worker.connection))
                last[worker.connection] = job.affinity
                with contextlib.suppress(OSError):  # A dead worker is found by `wait`.
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
    """Jobs by affinity."""

    def __init__(self, jobs: Iterator[Job]) -> None:
        self._groups: dict[str, collections.deque[Job]] = {}
        self._new: collections.deque[str] = collections.deque()
        for job in jobs:
            if job.affinity not in self._groups:
                self._new.append(job.affinity)
            self._groups.setdefault(job.affinity, collections.deque()).append(job)

    def __len__(self) -> int:
        return sum(map(len, self._groups.values()))

    def take(self, affinity: str | None) -> Job:
        """Returns a job with this affinity; or else of a group that is not begun, or of the one with most jobs left."""
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
    with _environment():
        process.start()
    other.close()  # So that the end of the process closes the connection.
    return _Worker(process, own)


@contextlib.contextmanager
def _environment() -> Iterator[None]:
    before = {name: os.environ.get(name) for name in _ENVIRONMENT}
    os.environ.update(_ENVIRONMENT)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _serve(connection: Connection, folder: str) -> None:
    """Runs the jobs that come until the connection is closed, by the end of the other process too."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # The other process ends this one.
    with contextlib.suppress(EOFError, OSError):
        while True:
            connection.send(_attempt(connection.recv(), folder))


def _attempt(job: Job, folder: str | os.PathLike[str]) -> str | None:
    """Runs a job; returns what went wrong, if anything did."""
    try:
        run_job(job, folder)
    except Exception:
        return traceback.format_exc()
    return None
