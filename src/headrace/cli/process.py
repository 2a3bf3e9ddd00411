"""A server as a process: its event loop, its signals, its log, its pid file, and how it becomes a daemon."""

import asyncio
import atexit
import contextlib
import fcntl
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import NoReturn

import click

from headrace.cli.interrupts import STOPPING
from headrace.cli.log_format import formatter
from headrace.cli.texts import ready_line
from headrace.event_loop import loop_factory

# How long a thread that runs Python code (compaction, reading records) keeps the event loop waiting for the
# GIL each time. Python's default is 5 ms.
SWITCH_INTERVAL_S = 0.001

logger = logging.getLogger("headrace")


class Refused(Exception):
    """What was asked for cannot be done; the sentence says why."""


def run(service: Coroutine[object, object, None], *, on_hup: Callable[[], None] | None = None) -> None:
    """Run `service` until it ends or is told to stop: TERM and Ctrl-C cancel it, and its `finally`s clean up.

    HUP, which a terminal sends as it closes, does the same unless there is `on_hup`. Ctrl-C and HUP do not
    where they are ignored from the start, as `nohup` and a script's `&` have it.
    """
    handler = logging.StreamHandler()
    handler.setFormatter(formatter())
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    logging.getLogger("headrace").setLevel(logging.INFO)
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(_until_told(service, on_hup))


async def _until_told(service: Coroutine[object, object, None], on_hup: Callable[[], None] | None) -> None:
    loop, task = asyncio.get_running_loop(), asyncio.ensure_future(service)

    def stop(name: str) -> None:
        if task.cancelling():
            logger.info("stopping already: got %s", name)  # a second Ctrl-C does not make it unclean
        else:
            logger.info("stopping: got %s", name)
            task.cancel()

    for number in STOPPING:
        loop.add_signal_handler(number, stop, number.name)
    if on_hup is not None:
        loop.add_signal_handler(signal.SIGHUP, on_hup)
    with contextlib.suppress(asyncio.CancelledError):
        await task


async def leaving_within(stop_s: float, service: Coroutine[object, object, None]) -> None:
    """Run `service`, and once it is cancelled have this process end within so many seconds.

    For one that holds nothing that matters: what its threads wait for then, nobody will hear of.
    """
    serving = asyncio.ensure_future(service)
    try:
        await asyncio.shield(serving)
    except asyncio.CancelledError:
        leaving = threading.Timer(stop_s, _leave, [stop_s])
        leaving.daemon = True  # it does not keep anybody who is done
        leaving.start()
        atexit.register(_cancel, leaving)  # called when no other thread can hang any more
        serving.cancel()
        await serving
        raise


def _cancel(timer: threading.Timer) -> None:
    timer.cancel()
    timer.join()


def _leave(stop_s: float) -> NoReturn:
    logger.info("leaving: something still hangs after %g s", stop_s)
    logging.shutdown()
    os._exit(0)


@contextlib.contextmanager
def pid_file(path: Path | None) -> Iterator[None]:
    """Keep this process's number in `path` while the block runs; Refused if another holds it.

    The file is locked, so a number left behind by a crash keeps nobody out.
    """
    if path is None:
        yield
        return
    with path.open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            raise Refused(f"{path} is held by process {file.read().strip()}: stop it first") from None
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


class Readiness:
    """How a server says that clients can connect: a line on stdout, or word to the process that forked it."""

    def __init__(self, report: int | None = None, *, as_json: bool = False) -> None:
        self._report = report
        self._as_json = as_json

    def say(self, **where: str) -> None:
        """Say it, once, and where: `ready bootstrap=HOST:PORT http=URL`, or that as JSON."""
        line = ready_line(where, as_json=self._as_json)
        if self._report is None:
            click.echo(line)
            sys.stdout.flush()
        else:
            logger.info("%s", line)
            _tell(self._report, "+", line)


def daemonize(log_file: Path, serve: Callable[[Readiness], None], *, as_json: bool = False) -> None:
    """Run `serve` in a process of its own session, its output in `log_file`; return once it is ready.

    What keeps it from starting is raised here, in the caller's process, as Refused.
    """
    log_file.open("a").close()  # what cannot be written is said here and now
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _become_daemon(log_file, serve, Readiness(writing, as_json=as_json), writing)
    os.close(writing)
    os.waitpid(child, 0)  # it ends as soon as it has forked the daemon
    with os.fdopen(reading) as report:
        said = report.read()
    if not said.startswith("+"):
        raise Refused(said[1:] or f"the daemon ended before it was ready: see {log_file}")
    click.echo(said[1:])


def _become_daemon(
    log_file: Path, serve: Callable[[Readiness], None], readiness: Readiness, report: int
) -> NoReturn:
    os.setsid()
    if os.fork() != 0:
        os._exit(0)
    null = os.open(os.devnull, os.O_RDONLY)
    log = os.open(log_file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    for source, target in ((null, 0), (log, 1), (log, 2)):
        os.dup2(source, target)
    status = 1
    try:
        serve(readiness)
        status = 0
    except Exception as error:  # the process ends here, whatever it was
        logger.exception("the broker ends")
        with contextlib.suppress(OSError):
            _tell(report, "-", " ".join(str(error).split()) or type(error).__name__)
    finally:
        logging.shutdown()
        os._exit(status)


def _tell(report: int, mark: str, line: str) -> None:
    os.write(report, f"{mark}{line}".encode())
    os.close(report)
