"""A disk that is full: a small one for one broker, filled up and made free again."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from cluster.brokers import BrokerProcess
from cluster.stage import Scene
from cluster.waiting import until
from cluster.workload import TOPIC

SIZE: Final = 64 * 1024 * 1024
SPARE: Final = 128 * 1024  # what is left when the disk is about to be full
BALLAST: Final = "ballast"
SMALL: Final = 2  # the broker with the small disk


def why_not() -> str | None:
    """Why there can be no small disk here; None if there can."""
    if os.geteuid() != 0 or shutil.which("mount") is None:
        return "a small disk takes a tmpfs, which only root may mount"
    with TemporaryDirectory() as directory:
        try:
            with small_disk(Path(directory)):
                return None
        except subprocess.CalledProcessError as error:
            return f"a tmpfs cannot be mounted here: {error.stderr.strip()}"


@contextmanager
def small_disk(path: Path) -> Iterator[None]:
    """A file system of its own at `path`, in memory."""
    path.mkdir(parents=True, exist_ok=True)
    _run("mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(path))
    try:
        yield
    finally:
        _run("umount", "--lazy", str(path))


def a_disk_is_full(scene: Scene) -> None:
    """Its broker stops leading and following; with room again and a restart it catches up."""
    broker = scene.cluster.brokers[SMALL]
    scene.forgiven.add(broker.id)
    ballast = broker.log_dir / BALLAST
    _fill(ballast, broker.log_dir)
    until("the broker with the full disk leads nothing", lambda: not _led(scene, broker))
    scene.workload.progress()
    ballast.unlink()
    if broker.running:
        broker.kill()
    broker.start()
    scene.cluster.heal()


def _led(scene: Scene, broker: BrokerProcess) -> list[int]:
    partitions = scene.cluster.assignment(TOPIC).replicas
    return [each for each in partitions if scene.cluster.state(TOPIC, each).leader == broker.id]


def _fill(ballast: Path, disk: Path) -> None:
    room = os.statvfs(disk)
    with ballast.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, room.f_bavail * room.f_frsize - SPARE)


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True)
