"""The owner of a directory: `meta.properties`, `partition.metadata`, and the lock of a running process."""

import fcntl
import os
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as Base64Error
from pathlib import Path
from typing import NamedTuple

from headrace.storage.errors import ForeignDirectory, StorageError
from headrace.storage.files import write_atomically

META_PROPERTIES = "meta.properties"
PARTITION_METADATA = "partition.metadata"
_ZOOKEEPER_LAYOUT, _KRAFT_LAYOUT = "0", "1"


class Identity(NamedTuple):
    """The broker and the cluster that own a log directory."""

    broker_id: int
    cluster_id: str


def read_identity(directory: Path) -> Identity | None:
    """Return the owner in `meta.properties`, in either of Kafka's layouts; None if there is no such file."""
    path = directory / META_PROPERTIES
    try:
        properties = _parse_properties(path.read_text("utf-8"))
    except FileNotFoundError:
        return None
    except UnicodeDecodeError:
        raise ForeignDirectory(f"{path} is not a properties file") from None
    version = properties.get("version")
    broker_key = {_ZOOKEEPER_LAYOUT: "broker.id", _KRAFT_LAYOUT: "node.id"}.get(version or "")
    if broker_key is None:
        raise ForeignDirectory(f"{path} has version {version!r}, expected 0 or 1")
    try:
        return Identity(int(properties[broker_key]), properties["cluster.id"])
    except (KeyError, ValueError):
        raise ForeignDirectory(f"{path} does not name a {broker_key} and a cluster.id") from None


def claim(directory: Path, identity: Identity) -> None:
    """Write `identity` into `directory`, or raise ForeignDirectory if it has another owner."""
    owner = read_identity(directory)
    if owner is None:
        lines = [
            f"version={_ZOOKEEPER_LAYOUT}",
            f"broker.id={identity.broker_id}",
            f"cluster.id={identity.cluster_id}",
        ]
        write_atomically(directory / META_PROPERTIES, "".join(f"{line}\n" for line in lines).encode())
    elif owner.cluster_id != identity.cluster_id:
        raise ForeignDirectory(
            f"{directory} belongs to cluster {owner.cluster_id}, this broker is of cluster "
            f"{identity.cluster_id}: choose another directory, or connect to the cluster it belongs to"
        )
    elif owner.broker_id != identity.broker_id:
        raise ForeignDirectory(
            f"{directory} belongs to broker {owner.broker_id}, this is broker {identity.broker_id}: "
            "choose another directory, or start with the broker id it belongs to"
        )


def read_topic_id(directory: Path) -> bytes | None:
    """Return the topic id, 16 bytes, of a partition's directory; None if there is none."""
    path = directory / PARTITION_METADATA
    try:
        lines = path.read_text("ascii").splitlines()
        version, topic_id = (line.split(": ", 1)[1] for line in lines)
        decoded = urlsafe_b64decode(topic_id + "==")
    except FileNotFoundError:
        return None
    except (ValueError, IndexError, Base64Error):
        raise StorageError(f"{path} is not a partition.metadata file") from None
    if version != "0" or len(decoded) != 16:
        raise StorageError(f"{path} has version {version} and a topic id of {len(decoded)} bytes")
    return decoded


def write_topic_id(directory: Path, topic_id: bytes, *, sync: bool = True) -> None:
    encoded = urlsafe_b64encode(topic_id).rstrip(b"=").decode()
    content = f"version: 0\ntopic_id: {encoded}".encode()
    write_atomically(directory / PARTITION_METADATA, content, sync=sync)


def _parse_properties(text: str) -> dict[str, str]:
    pairs = (line.split("=", 1) for line in text.splitlines() if "=" in line and not line.startswith("#"))
    return {key.strip(): value.strip() for key, value in pairs}


LOCK_FILE = ".lock"
_held: set[Path] = set()  # a POSIX lock does not exclude its own process


class DirectoryLock:
    """A lock on a log directory, held from construction until `release` or until the process dies."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory.resolve()
        if self._directory in _held:
            raise ForeignDirectory(f"{directory} is already in use by this process")
        descriptor = os.open(directory / LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)  # the same kind of lock as Java's
        except OSError:
            os.close(descriptor)
            raise ForeignDirectory(
                f"{directory} is in use by another process: stop it first, or choose another directory"
            ) from None
        self._descriptor: int | None = descriptor
        _held.add(self._directory)

    def release(self) -> None:
        """Release the lock. The file stays: another process may have opened it already to lock it."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
            _held.remove(self._directory)
