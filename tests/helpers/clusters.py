"""Starts the processes of a local cluster, which find each other through TF_CONFIG."""

import contextlib
import json
import socket
import time

from tests import helpers


def free_ports(count):
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("localhost", 0))
        return [one.getsockname()[1] for one in sockets]


@contextlib.contextmanager
def processes_of(jobs, command, folder):
    """Starts one process per task, yields the processes by job and index, and kills them at the end."""
    ports = iter(free_ports(sum(jobs.values())))
    cluster = {job: [f"localhost:{next(ports)}" for _ in range(count)] for job, count in jobs.items()}
    processes = {}
    try:
        for job, count in jobs.items():
            for index in range(count):
                config = json.dumps({"cluster": cluster, "task": {"type": job, "index": index}})
                with open(folder / f"{job}{index}.log", "w") as log:
                    processes[job, index] = helpers.start_python(*command, log=log, TF_CONFIG=config)
        yield processes
    finally:
        for process in processes.values():
            process.kill()
            process.wait()


def finish(processes, folder, timeout=240):
    """Waits for the processes and asserts that all of them succeed."""
    deadline = time.time() + timeout
    for (job, index), process in processes.items():
        returned = process.wait(max(1.0, deadline - time.time()))
        assert returned == 0, (folder / f"{job}{index}.log").read_text()[-4000:]
