"""The arguments of spark-submit for a driver that runs on the cluster (`--deploy-mode cluster`)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from headrace.spark.errors import SparkError
from headrace.spark.packed import DIRECTORY, is_archive, location, python_of

# A standalone cluster starts only Java classes as drivers. This one of Spark's own runs a Python program.
_PYTHON_RUNNER: Final = "org.apache.spark.deploy.PythonRunner"
JAR: Final = "driver.jar"
"""An empty jar of the environment: a standalone cluster wants one."""
DRIVER: Final = "driver.py"


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
