"""A packed environment on a cluster, and the arguments of spark-submit for a driver that runs there.

An environment is an archive that Spark sends to executors (`spark.archives`), or a directory that exists
under the same path on all machines, in a container image for example.
"""

import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from headrace.spark.errors import SparkError
from headrace.spark.launcher import cache_directory, write_program

# A standalone cluster starts only Java classes as drivers. This one of Spark's own runs a Python program.
_PYTHON_RUNNER: Final = "org.apache.spark.deploy.PythonRunner"
JAR: Final = "driver.jar"
"""An empty jar of the environment: a standalone cluster wants one."""
DRIVER: Final = "driver.py"
DIRECTORY: Final = "environment"
"""Where executors find an unpacked archive, in their working directory."""
PYTHON: Final = "bin/python"
BY_PATH: Final = "headrace-python"
"""The same launcher, under a name that the PATH of a driver can have, too."""
_ARCHIVES: Final = (".tar.gz", ".tgz", ".zip")
_SYSTEM_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def absolute(environment: str) -> str:
    """Return a relative path as an absolute one, and a URL as it is."""
    return environment if "://" in environment else str(Path(environment).absolute())


def is_archive(environment: str) -> bool:
    return environment.lower().endswith(_ARCHIVES)


def location(environment: str) -> str:
    """Return where the processes of a cluster find the environment."""
    return DIRECTORY if is_archive(environment) else environment.rstrip("/")


def python_of(environment: str) -> str:
    """Return the Python of the environment, for drivers that run on the cluster and for executors."""
    path = f"{location(environment)}/{PYTHON}"
    return f"./{path}" if is_archive(environment) else path


def use_environment(environment: str) -> dict[str, str]:
    """Have the executors of this process's next session use the environment; return its settings.

    Spark runs data sources with the same command on executors and, to plan, here. With an archive no path is
    right for both: only executors have ./environment. So the command is a name, which the PATH of executors
    resolves to the launcher of the environment, and that of this process to this Python.
    """
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    if not is_archive(environment):
        os.environ["PYSPARK_PYTHON"] = python_of(environment)
        return {}
    programs = cache_directory() / f"driver{sys.executable.replace('/', '-')}"
    write_program(programs / BY_PATH, f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n')
    os.environ["PATH"] = f"{programs}:{os.environ.get('PATH', _SYSTEM_PATH)}"
    os.environ["PYSPARK_PYTHON"] = BY_PATH
    return {
        "spark.archives": f"{environment}#{DIRECTORY}",
        "spark.executorEnv.PATH": f"./{DIRECTORY}/bin:{_SYSTEM_PATH}",
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """A driver to run on a cluster. `program` is driver.py on this machine, for clusters that copy it."""

    name: str
    master: str
    environment: str
    program: str
    arguments: Sequence[str]
    settings: Mapping[str, str] = field(repr=False)  # may contain passwords
    supervise: bool

    def properties(self) -> str:
        """Return the content of the file with settings: all users of a machine can read arguments."""
        settings = {"spark.pyspark.python": python_of(self.environment), **self.settings}
        escaped = (value.replace("\\", "\\\\").replace("\n", "\\n") for value in settings.values())
        return "".join(f"{name} {value}\n" for name, value in zip(settings, escaped, strict=True))

    def command(self, properties: Path) -> list[str]:
        """Return the arguments of spark-submit; SparkError if this master cannot do that."""
        options = ["--master", self.master, "--deploy-mode", "cluster", "--name", self.name]
        options += ["--properties-file", str(properties), "--load-spark-defaults"]
        if self.master.startswith("spark://"):
            return [*options, *self._standalone()]
        if self.master == "yarn" or self.master.startswith("k8s://"):
            program = [f"local://{location(self.environment)}/{DRIVER}"]
            if is_archive(self.environment):
                program = ["--archives", f"{self.environment}#{DIRECTORY}", self.program]
            return [*options, *program, *self.arguments]
        raise SparkError(
            f"--deploy-mode cluster needs --master spark://…, yarn or k8s://…, which start drivers, "
            f"not {self.master}"
        )

    def _standalone(self) -> list[str]:
        """A standalone cluster starts the driver again if it fails, or if its worker is lost."""
        if is_archive(self.environment):
            raise SparkError(
                f"a standalone cluster does not unpack {self.environment} for its drivers: unpack it to a "
                "directory that all workers have, and give that as --environment"
            )
        root = location(self.environment)
        program = ["--class", _PYTHON_RUNNER, f"file:{root}/{JAR}", f"{root}/{DRIVER}"]
        no_python_files = ""
        return [*(["--supervise"] if self.supervise else []), *program, no_python_files, *self.arguments]
