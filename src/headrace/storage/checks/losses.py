"""Which logs of a directory may have lost records: `headrace.boot`, and what it is compared with.

A process that is killed loses nothing that it has written: the system keeps it and writes it to the disk.
These signs say that records may be missing; each is found by the broker alone, before it registers:

- the machine was rebooted since, and the directory was not closed before: unflushed records are gone;
- the directory is a copy that was made while a broker used it;
- the broker has registered since with another copy of the directory, which is newer than this one;
- recovery has truncated a log, a log cannot be opened, or it ends before its checkpointed high watermark.

The first three concern every log. Whatever was found stays in the file until the controller has confirmed
that it knows: such a replica is not elected while another may have more records. Where there is no boot id,
every unclean stop counts as a reboot.
"""

import json
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

from headrace.protocol.ids import TopicPartition
from headrace.storage.files import write_atomically
from headrace.storage.identity import META_PROPERTIES
from headrace.storage.topics import parse_directory
from headrace.system.system_calls import boot_id

BOOT: Final = "headrace.boot"
_OLD_DOUBT: Final = b"in doubt"  # the whole content, written by version 0.1; otherwise it was a boot id


class Losses:
    """What may have been lost from a log directory. `write` replaces the content of headrace.boot."""

    def __init__(
        self,
        content: bytes | None,
        *,
        boot: str | None,
        identity: int,
        clean: bool,
        write: Callable[[bytes], None],
    ) -> None:
        """`content` is that of headrace.boot; `identity` differs between a directory and its copies."""
        self._boot = boot
        self._identity = identity
        self._write = write
        self._content = content
        self._saving = threading.Lock()
        known = _decode(content)
        self._registrations: int = known.get("registrations", -1)
        same_boot = boot is not None and known.get("boot") == boot
        copied = known.get("identity", identity) != identity
        self.everywhere = bool(known.get("everywhere")) or (not clean and (copied or not same_boot))
        found = map(parse_directory, known.get("partitions", ()))
        self.partitions: set[TopicPartition] = {each for each in found if each is not None}
        if self.everywhere:
            self._save()

    def add(self, partitions: Iterable[TopicPartition]) -> None:
        """Note that these logs lack records; on disk when this returns. Call it before a log is truncated."""
        new = {*partitions} - self.partitions
        if new:
            self.partitions |= new
            self._save()

    def compare_registrations(self, count: int) -> None:
        """Compare how often the broker had registered before this start with what the directory knows."""
        if 0 <= self._registrations < count and not self.everywhere:
            self.everywhere = True
            self._save()

    def registered(self, count: int) -> None:
        """Note that the broker registers for the `count`th time, with this directory. Any thread may call."""
        self._registrations = count
        self._save()

    def confirmed(self) -> None:
        """Note that the controller knows of the losses: the logs are filled up from their leaders now."""
        self.everywhere = False
        self.partitions.clear()
        self._save()

    def _save(self) -> None:
        with self._saving:
            known: dict[str, Any] = {"identity": self._identity, "registrations": self._registrations}
            if self.everywhere:
                known["everywhere"] = True
            elif self._boot is not None:
                known["boot"] = self._boot
            if self.partitions:
                known["partitions"] = sorted(map(str, self.partitions))
            content = json.dumps(known).encode() + b"\n"
            if content != self._content:
                self._write(content)
                self._content = content


def read_losses(directory: Path, *, clean: bool) -> Losses:
    """Return what may have been lost from the logs in `directory`, which has a meta.properties."""
    file = directory / BOOT
    return Losses(
        file.read_bytes() if file.exists() else None,
        boot=boot_id(),
        # The time of the last change of an inode: no tool can copy it, and the file is written only once.
        identity=(directory / META_PROPERTIES).stat().st_ctime_ns,
        clean=clean,
        write=lambda content: write_atomically(file, content),
    )


def _decode(content: bytes | None) -> dict[str, Any]:
    """Return the content of the file; a directory without a readable one may have lost records."""
    if content is None:
        return {}
    if not content.startswith(b"{"):
        old = content.strip()
        return {"everywhere": True} if old == _OLD_DOUBT else {"boot": old.decode("ascii", "replace")}
    try:
        known = json.loads(content)
        return {
            "boot": known.get("boot"),
            "identity": int(known["identity"]),
            "registrations": int(known["registrations"]),
            "everywhere": bool(known.get("everywhere")),
            "partitions": [str(each) for each in known.get("partitions", ())],
        }
    except (ValueError, KeyError, TypeError, AttributeError):
        return {}
