"""A packed environment on a cluster: which Python executors run, and how they get it.

An environment is an archive that Spark sends to executors (`spark.archives`), or a directory that exists
under the same path on all machines, in a container image for example.
"""

import os
import shlex
import sys
from pathlib import Path
from typing import Final

from headrace.spark.launcher import cache_directory, write_program

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
