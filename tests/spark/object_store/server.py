"""An S3 server on loopback: MinIO, compiled once from the modules of Go's proxy."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

import obstore
from obstore.store import S3Store

from compat.kafka_tools.java import find_jars
from compat.registry_clients.programs import ClientUnavailable, kept
from spark.storage_server import StorageServer

HERE: Final = Path(__file__).parent
BUILD_TIMEOUT_S: Final = 3600  # 500 modules, on a machine that is busy otherwise
USER: Final = "headrace-tests"
PASSWORD: Final = "through-the-looking-glass"
BUCKET: Final = "pipelines"


def find_minio() -> Path:
    """Return the program, compiled if this is the first time; ClientUnavailable if that is not possible."""
    go = shutil.which("go")
    if go is None:
        raise ClientUnavailable("MinIO needs go (1.24 or newer).")

    def build(directory: Path) -> None:
        command = [go, "build", "-o", str(directory / "minio"), "github.com/minio/minio"]
        made = subprocess.run(
            command,
            cwd=HERE / "minio",
            env={**os.environ, "GOTOOLCHAIN": "local"},
            capture_output=True,
            text=True,
            check=False,
            timeout=BUILD_TIMEOUT_S,
        )
        if made.returncode:
            raise ClientUnavailable(f"MinIO could not be built: {made.stderr[-500:]}")

    return kept(sorted((HERE / "minio").iterdir()), build) / "minio"


def s3a_jars() -> list[Path]:
    """Return the jars with which Spark reads and writes s3a:// URLs."""
    return sorted(find_jars(HERE / "pom.xml").glob("*.jar"))


class S3Server(StorageServer):
    """MinIO with one bucket. `variables` are those of a process that uses it."""

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    @property
    def variables(self) -> dict[str, str]:
        return {
            "AWS_ACCESS_KEY_ID": USER,
            "AWS_SECRET_ACCESS_KEY": PASSWORD,
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_REGION": "us-east-1",
            "AWS_ALLOW_HTTP": "true",
        }

    def _command(self) -> list[str | Path]:
        minio = find_minio()
        (self._root / "data" / BUCKET).mkdir(parents=True)  # a bucket is a directory
        return [minio, "server", "--quiet", "--address", f"127.0.0.1:{self._port}", self._root / "data"]

    def _variables(self) -> dict[str, str]:
        return {**os.environ, "MINIO_ROOT_USER": USER, "MINIO_ROOT_PASSWORD": PASSWORD}

    def _write(self) -> None:
        obstore.put(self.store(), "ready", b"")

    def store(self, prefix: str = "") -> S3Store:
        return S3Store(
            BUCKET,
            prefix=prefix or None,
            endpoint=self.endpoint,
            access_key_id=USER,
            secret_access_key=PASSWORD,
            region="us-east-1",
            client_options={"allow_http": True},
        )

    def names(self, prefix: str) -> list[str]:
        """Return the names of all files that begin with a prefix; Hadoop marks directories by empty ones."""
        names = (each["path"] for batch in obstore.list(self.store()) for each in batch if each["size"])
        return sorted(name for name in names if name.startswith(prefix))
