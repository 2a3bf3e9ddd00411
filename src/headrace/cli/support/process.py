"""A server as a process: its event loop, its signals, its log, its pid file, and how it becomes a daemon."""

import asyncio
import atexit
import contextlib
import fcntl
import gc
import json
import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NoReturn

import click

from headrace.cli.support.interrupts import STOPPING
from headrace.system.event_loop import loop_factory

# A thread that runs Python code (compaction, decoding of records) makes the event loop wait this long for the
# GIL each time. Python's default is 5 ms.
SWITCH_INTERVAL_S = 0.001

COMPLETE_EVERY: Final = 100  # full garbage collections
COMPLETE_AFTER_S: Final = 60.0  # since the last one: a few of the largest requests cause 100 full collections
_FULL_AFTER: Final = 2  # collections of the middle generation: more often means fewer new objects each time
_OLDEST_GENERATION: Final = 2

# An environment variable, so that the processes of a cluster inherit it from their parent.
LOG_FORMAT: Final = "HEADRACE_LOG_FORMAT"

NOTIFY_SOCKET: Final = "NOTIFY_SOCKET"  # systemd sets it

logger = logging.getLogger("headrace")


class CommandFailed(Exception):
    """A command cannot do what its arguments say; the message tells the user why."""


def run(service: Coroutine[object, object, None], *, on_hup: Callable[[], None] | None = None) -> None:
    """Run `service` until it ends, or until TERM or Ctrl-C cancels it; its `finally` blocks clean up.

    HUP, which a closing terminal sends, cancels it too unless there is `on_hup`. Ctrl-C and HUP stay ignored
    if they were ignored at the start, as `nohup` and a script's `&` arrange it.
    """
    handler = logging.StreamHandler()
    handler.setFormatter(log_formatter())
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    logging.getLogger("headrace").setLevel(logging.INFO)
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(_until_signal(service, on_hup))


def exempt_from_collections(clock: Callable[[], float] = time.monotonic) -> None:
    """Keep full garbage collections from traversing objects that have survived one, and what exists now.

    A full collection traverses every object and holds the event loop: 28 ms with the modules alone, and 60 ms
    more with 100,000 transactional ids. Nearly all garbage is freed without it. Reference cycles among the
    exempted objects are found by every COMPLETE_EVERY-th full collection, which traverses all of them, but
    at most once a minute.
    """
    gc.freeze()
    gc.set_threshold(*gc.get_threshold()[:2], _FULL_AFTER)
    gc.callbacks.append(_ExemptSurvivors(clock))
    # Python delays a full collection until there are a quarter as many new objects as the last one has left.
    gc.collect()


class _ExemptSurvivors:
    """A callback of the garbage collector."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._collections = 0  # since the last complete one
        self._completed_s = clock()

    def __call__(self, phase: str, info: Mapping[str, int]) -> None:
        if info["generation"] < _OLDEST_GENERATION:
            return
        if phase == "start":
            self._collections += 1
            now_s = self._clock()
            if self._collections >= COMPLETE_EVERY and now_s - self._completed_s >= COMPLETE_AFTER_S:
                self._collections, self._completed_s = 0, now_s
                gc.unfreeze()
        else:
            gc.freeze()


async def _until_signal(service: Coroutine[object, object, None], on_hup: Callable[[], None] | None) -> None:
    loop, task = asyncio.get_running_loop(), asyncio.ensure_future(service)

    def stop(name: str) -> None:
        if task.cancelling():
            logger.info("stopping already: got %s", name)  # a second Ctrl-C does not make the stop unclean
        else:
            logger.info("stopping: got %s", name)
            notify_systemd("STOPPING=1")
            task.cancel()

    for number in STOPPING:
        loop.add_signal_handler(number, stop, number.name)
    if on_hup is not None:
        loop.add_signal_handler(signal.SIGHUP, on_hup)
    with contextlib.suppress(asyncio.CancelledError):
        await task


async def exit_within(stop_s: float, service: Coroutine[object, object, None]) -> None:
    """Run `service`; once it is cancelled, end this process within `stop_s` seconds.

    This is for a service without state of its own: nobody waits for the requests that its threads still have.
    """
    serving = asyncio.ensure_future(service)
    try:
        await asyncio.shield(serving)
    except asyncio.CancelledError:
        timer = threading.Timer(stop_s, _exit_now, [stop_s])
        timer.daemon = True  # the timer does not delay an exit that needs no force
        timer.start()
        # These run, the last one first, when no other thread can hang any more.
        atexit.register(timer.join)
        atexit.register(timer.cancel)
        serving.cancel()
        await serving
        raise


def _exit_now(stop_s: float) -> NoReturn:
    logger.info("exiting by force: a thread still runs after %g s", stop_s)
    logging.shutdown()
    os._exit(0)


@contextlib.contextmanager
def pid_file(path: Path | None) -> Iterator[None]:
    """Keep this process's number in `path` while the block runs; CommandFailed if another process has it.

    The file is locked, so a file that a crash left behind does not block the next start.
    """
    if path is None:
        yield
        return
    with path.open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            raise CommandFailed(f"{path} is held by process {file.read().strip()}: stop it first") from None
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


class Readiness:
    """Reports that clients can connect: on stdout, or from a daemon to the process that forked it."""

    def __init__(self, report: int | None = None, *, as_json: bool = False) -> None:
        self._report = report
        self.as_json = as_json

    def say(self, **addresses: str) -> None:
        """Print `ready bootstrap=HOST:PORT http=URL`, or the same as JSON, once."""
        text = " ".join(["ready", *(f"{name}={address}" for name, address in addresses.items())])
        line = json.dumps({"ready": True, **addresses}) if self.as_json else text
        if self._report is None:
            click.echo(line)
            sys.stdout.flush()
        else:
            logger.info("%s", line)
            _report(self._report, "+", line)
        notify_systemd(f"READY=1\nSTATUS={text}")


def notify_systemd(state: str) -> None:
    """Tell systemd the state of a service with Type=notify, as sd_notify(3) does; else do nothing."""
    address = os.environ.get(NOTIFY_SOCKET, "")
    if not address:
        return
    if address.startswith("@"):  # the abstract namespace
        address = "\0" + address[1:]
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notifying:
            notifying.connect(address)
            notifying.send(state.encode())
    except OSError as error:
        logger.warning("systemd does not get %r: %s=%s: %s", state, NOTIFY_SOCKET, address, error)


def daemonize(log_file: Path, serve: Callable[[Readiness], None], *, as_json: bool = False) -> None:
    """Run `serve` in a process of its own session, its output in `log_file`; return once it is ready.

    An error that keeps the daemon from starting is raised here, in the caller's process, as CommandFailed.
    """
    log_file.open("a").close()  # a file that cannot be written is an error of this process
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _become_daemon(log_file, serve, Readiness(writing, as_json=as_json), writing)
    os.close(writing)
    os.waitpid(child, 0)  # the child exits as soon as it has forked the daemon
    with os.fdopen(reading) as report:
        reported = report.read()
    if not reported.startswith("+"):
        raise CommandFailed(reported[1:] or f"the daemon ended before it was ready: see {log_file}")
    click.echo(reported[1:])


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
    except Exception as error:  # the process ends here, whatever the error is
        logger.exception("the broker ends")
        with contextlib.suppress(OSError):
            _report(report, "-", " ".join(str(error).split()) or type(error).__name__)
    finally:
        logging.shutdown()
        os._exit(status)


def _report(report: int, mark: str, line: str) -> None:
    os.write(report, f"{mark}{line}".encode())
    os.close(report)


class JsonFormatter(logging.Formatter):
    """{"time": …, "level": …, "logger": …, "message": …, "process": …} and, for an error, "exception".

    `fields` are added to every entry.
    """

    def __init__(self, fields: Mapping[str, object]) -> None:
        super().__init__()
        self._fields = fields

    def format(self, record: logging.LogRecord) -> str:
        """Return one line of JSON."""
        entry: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            "process": record.process,
            **self._fields,
        }
        entry |= getattr(record, "fields", {})
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        return json.dumps(entry, default=str)


def log_formatter(member: str | None = None) -> logging.Formatter:
    """Return the formatter that HEADRACE_LOG_FORMAT names: text, the default, or json.

    Every entry names the `member` of several processes that share a log: `broker-3`, or "broker": 3 in JSON.
    """
    name = os.environ.get(LOG_FORMAT, "text")
    if name not in {"text", "json"}:
        raise click.UsageError(f"{LOG_FORMAT} is {name!r}: choose text or json.")
    if name == "text":
        label = "" if member is None else f"{member}: "
        return logging.Formatter(f"%(asctime)s %(levelname)s {label}%(message)s")
    if member is None:
        return JsonFormatter({})
    kind, _, number = member.rpartition("-")
    return JsonFormatter({"broker": int(number)} if kind == "broker" else {"member": member})


def name_in_log(member: str) -> None:
    """Have every entry of this process's log name the member that it is."""
    for handler in logging.getLogger().handlers:
        handler.setFormatter(log_formatter(member))
