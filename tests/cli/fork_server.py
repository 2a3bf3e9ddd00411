"""Runs `headrace` commands in processes that are forked after the modules of the command line are imported.

Most of the CPU time of a short command is Python that starts and imports: a fork has done that already. In
every other respect, up to its exit, the process is the command's own.
"""

import atexit
import gc
import json
import os
import pkgutil
import runpy
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib import import_module
from typing import Any, Final

PACKAGES: Final = ("headrace.cli", "headrace.client")
MAX_REQUEST: Final = 128 * 1024


class ForkServer:
    """The server of this process: a child, which ends with it."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", __file__, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.PIPE,  # sys.stdin and sys.stdout are made for pipes, as a command has them
                stdout=subprocess.PIPE,
                start_new_session=True,  # so that it can be killed together with a command that hangs
            )
        atexit.register(self.kill)

    def kill(self) -> None:
        self._socket.close()
        if self._process.stdin is not None and self._process.stdout is not None:
            self._process.stdin.close()
            self._process.stdout.close()
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def run(
        self, arguments: Sequence[str], *, stdin: bytes, environment: Mapping[str, str], timeout_s: float
    ) -> tuple[int, bytes, bytes]:
        """Return the status of `python -m headrace` with these arguments, its stdout and its stderr."""
        request = {"arguments": arguments, "environment": dict(environment), "directory": os.getcwd()}  # noqa: PTH109
        (in_read, in_write), (out_read, out_write), (err_read, err_write) = os.pipe(), os.pipe(), os.pipe()
        theirs = [in_read, out_write, err_write]
        socket.send_fds(self._socket, [json.dumps(request).encode()], theirs)
        for each in theirs:
            os.close(each)
        with ThreadPoolExecutor(3) as threads:
            threads.submit(_write, in_write, stdin)
            out, err = threads.submit(_read, out_read), threads.submit(_read, err_read)
            self._socket.settimeout(timeout_s)
            try:
                status = int(self._socket.recv(MAX_REQUEST))
            except TimeoutError:
                self.kill()
                fork_server.cache_clear()
                raise subprocess.TimeoutExpired([*arguments], timeout_s) from None
            return status, out.result(), err.result()


@cache
def fork_server() -> ForkServer:
    return ForkServer()


def _write(pipe: int, data: bytes) -> None:
    try:
        with open(pipe, "wb") as file:
            file.write(data)
    except BrokenPipeError:
        return  # the command has ended without reading it all, as `subprocess.run` allows


def _read(pipe: int) -> bytes:
    with open(pipe, "rb") as file:
        return file.read()


# -- the server ----------------------------------------------------------------------------------


def serve(connection: socket.socket) -> None:
    """Run one command after the other until the client closes its end; a command leaves with SystemExit."""
    for name in PACKAGES:
        for module in pkgutil.walk_packages(import_module(name).__path__, f"{name}."):
            import_module(module.name)
    gc.freeze()
    while True:
        message, descriptors, _, _ = socket.recv_fds(connection, MAX_REQUEST, 3)
        if not message:
            return
        process_id = os.fork()
        if process_id == 0:
            connection.close()
            _run(json.loads(message), descriptors)
        for each in descriptors:
            os.close(each)
        _, status = os.waitpid(process_id, 0)
        connection.send(str(os.waitstatus_to_exitcode(status)).encode())


def _run(request: dict[str, Any], descriptors: Sequence[int]) -> None:
    """Do what `python -m headrace` does in the directory and the environment of the request."""
    for number, each in enumerate(descriptors):
        os.dup2(each, number)
        os.close(each)
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["directory"])
    sys.path.insert(0, request["directory"])
    sys.argv[1:] = request["arguments"]
    runpy.run_module("headrace", run_name="__main__", alter_sys=True)
    sys.exit()


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
