"""Starts the processes of a local cluster, which find each other through TF_CONFIG."""

import contextlib
import json
import os
import socket
import subprocess
import sys
import time


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
                environment = {
                    **os.environ,
                    "TF_CONFIG": json.dumps({"cluster": cluster, "task": {"type": job, "index": index}}),
                    "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
                    "CUDA_VISIBLE_DEVICES": "-1",
                }
                with open(folder / f"{job}{index}.log", "w") as log:
                    program = [sys.executable, *command]
                    processes[job, index] = subprocess.Popen(program, env=environment, stdout=log, stderr=log)
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
