"""The Java programs in `java/`: compiled once, and run as processes that tests kill, pause and restart."""

import hashlib
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from signal import SIGCONT, SIGKILL, SIGQUIT, SIGSTOP, SIGTERM, Signals
from typing import Final

from compat.kafka_tools.assignors import can_compile
from compat.kafka_tools.java import CACHE, SHORT_LIVED, KafkaJava, KafkaUnavailableError, find_jars, find_java
from compat.locking import only_one_process

POM: Final = Path(__file__).with_name("pom.xml")
SOURCES: Final = sorted((Path(__file__).parent / "java").glob("*.java"))
PLUGINS: Final = {  # what ServiceLoader reads, by which a Connect worker finds its connectors
    "org.apache.kafka.connect.source.SourceConnector": "NumbersSource\n"
}
TIMES: Final = (  # in log lines
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
    "-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS",
)
COMPILE_TIMEOUT_S: Final = 300
STOP_TIMEOUT_S: Final = 120


@dataclass(frozen=True, slots=True)
class JavaPrograms:
    """Runs the compiled programs, and those in the jars of Kafka Streams and Kafka Connect."""

    java: Path
    jars: Path
    classes: Path

    def command(self, main_class: str, *arguments: str) -> list[str]:
        options = [*SHORT_LIVED, *TIMES, "-cp", f"{self.classes}:{self.jars}/*"]
        return [str(self.java), *options, main_class, *arguments]


def find_programs() -> JavaPrograms:
    """Return what runs the programs; fetch jars and compile if this is the first time."""
    java, jars = find_java(), find_jars(POM)
    if not can_compile(KafkaJava(java=java, jars=jars)):
        raise KafkaUnavailableError(f"{java} has no compiler: install a JDK (17 or newer).")
    digest = hashlib.sha256(b"".join(each.read_bytes() for each in (POM, *SOURCES))).hexdigest()[:12]
    classes = CACHE / f"programs-{digest}"
    with only_one_process(CACHE):
        if not classes.is_dir():
            _compile(java, jars, classes)
    return JavaPrograms(java, jars, classes)


def _compile(java: Path, jars: Path, classes: Path) -> None:
    with tempfile.TemporaryDirectory(dir=CACHE) as scratch:
        made = Path(scratch) / "classes"
        compiler = [str(java), "-m", "jdk.compiler/com.sun.tools.javac.Main"]
        class_path = ":".join(map(str, sorted(jars.glob("*.jar"))))  # only the launcher, javac, knows "*"
        command = [*compiler, "-d", str(made), "-cp", class_path, *map(str, SOURCES)]
        ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=COMPILE_TIMEOUT_S)
        assert ran.returncode == 0, ran.stderr
        services = made / "META-INF" / "services"
        services.mkdir(parents=True)
        for interface, names in PLUGINS.items():
            (services / interface).write_text(names)
        made.rename(classes)  # all of it or nothing


class Process:
    """A program that runs until it is stopped or killed; `log` has what it prints, of all its runs."""

    def __init__(self, command: Sequence[str], log: Path) -> None:
        self._command = list(command)
        self.log = log
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        assert not self.running, self._command
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def stop(self) -> None:
        """End the program with SIGTERM; it may take its time."""
        self._signal(SIGTERM)
        self._wait(STOP_TIMEOUT_S)

    def kill(self) -> None:
        """End the program with SIGKILL; do nothing if it does not run."""
        if self.running:
            self._signal(SIGKILL)
            self._wait(None)

    def pause(self) -> None:
        self._signal(SIGSTOP)

    def resume(self) -> None:
        self._signal(SIGCONT)

    def dump_threads(self) -> None:
        """Have Java print the stacks of its threads to the log."""
        self._signal(SIGQUIT)

    def end_of_log(self) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-40:])

    def check(self) -> None:
        """Raise AssertionError with the end of the log if the program has ended by itself."""
        assert self.running, f"{self._command[-6:]} has ended:\n{self.end_of_log()}"

    def _signal(self, number: Signals) -> None:
        assert self._process is not None, self._command
        self._process.send_signal(number)

    def _wait(self, timeout_s: float | None) -> None:
        assert self._process is not None
        self._process.wait(timeout_s)
