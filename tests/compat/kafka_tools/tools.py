"""Apache Kafka's DumpLogSegments, and a reading of what it prints.

The tool exits with 0 for most of what it finds wrong, so its output must be read:

    isvalid: false                              the batch fails its checksum
    Found 126 invalid bytes at the end of …     a torn tail
    Mismatches in :….index                      an entry's offset is not the last one of the batch there
    Found timestamp mismatch in :….timeindex    … not the largest timestamp of that batch
    Found out of order timestamp in :…          … smaller than the one before
    The following indexed offsets are not found in :….timeindex
    Non-consecutive offsets in ….log            with --deep-iteration
    Snapshot is corrupt, Snapshot failed schema validation

What it cannot digest ends in an exception and exit status 1. What it overlooks: a wrong `version` in a
.txnindex entry, an .index whose size is no multiple of 8, and a `magic` it does not know.
"""

import re
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from compat.kafka_tools.java import KafkaJava

TIMEOUT_S: Final = 120
FILES_PER_RUN: Final = 200  # they travel in one argument, and Linux allows it 128 KiB
INDEXES: Final = (".index", ".timeindex")
SOUND: Final = re.compile(
    r"Dumping .*"
    r"|Log starting offset: \d+"
    r"|baseOffset: \d+ .* magic: 2 .* isvalid: true"
    r"|\| offset: .*"
    r"|offset: \d+ position: \d+"
    r"|timestamp: \d+ offset: \d+"
    r"|.* (is empty|passed sanity check)\."
    r"|producerId: \d+ producerEpoch: .*"
    r"|version: 0 producerId: \d+ firstOffset: .*"
    r"|"
)
HEADINGS: Final = ("Non-consecutive offsets in ", "Found timestamp mismatch in :")
JUMP: Final = re.compile(r"  (-?\d+) is followed by (\d+)")
EMPTIED: Final = re.compile(r"  Index timestamp: \d+, log timestamp: -1")


class DumpFailedError(Exception):
    """DumpLogSegments gave up; the message is what it printed."""


@dataclass(frozen=True, slots=True)
class KafkaTools:
    java: KafkaJava

    def dump_log_segments(
        self,
        files: Sequence[Path],
        *,
        deep: bool = True,
        verify_index_only: bool = False,
        index_sanity_check: bool = True,
        extra: Sequence[str] = (),
    ) -> str:
        """Return all that DumpLogSegments prints about the files; raise DumpFailedError if it gives up.

        Indexes are compared with the log beside them. The sanity check, the one a starting broker makes,
        replaces that comparison, so it is a run of its own. A run costs a second whatever the number of
        files: pass many.
        """
        options = [*extra]
        options += ["--deep-iteration"] if deep else []
        options += ["--verify-index-only"] if verify_index_only else []
        output = self._dump(files, options)
        if index_sanity_check:
            indexes = [file for file in files if file.suffix in INDEXES]
            output += self._dump(indexes, ["--index-sanity-check"])
        return output

    def _dump(self, files: Sequence[Path], options: Sequence[str]) -> str:
        return "".join(
            self._run(files[start : start + FILES_PER_RUN], options)
            for start in range(0, len(files), FILES_PER_RUN)
        )

    def _run(self, files: Sequence[Path], options: Sequence[str]) -> str:
        command = self.java.command(
            "org.apache.kafka.tools.DumpLogSegments", *options, "--files", ",".join(map(str, files))
        )
        run = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        if run.returncode != 0:
            raise DumpFailedError(run.stderr)
        return run.stdout + run.stderr


def complaints(output: str, *, compacted: bool = False) -> list[str]:
    """Return the lines of a dump that signal trouble: all but those known to be sound.

    `compacted` allows offsets to have holes, but never to repeat or go back, and batches to be empty.
    """
    return [line for line in _without_harmless(output.splitlines(), compacted) if not SOUND.fullmatch(line)]


def _without_harmless(lines: Sequence[str], compacted: bool) -> Iterator[str]:
    """Drop findings that mean nothing, and a heading that is left with none."""
    heading: str | None = None
    for line in lines:
        if line.startswith(HEADINGS):
            heading = line
        elif not line.startswith("  "):
            yield line
        elif not _is_harmless(line, compacted):
            if heading is not None:
                yield heading
            heading = None
            yield line


def _is_harmless(line: str, compacted: bool) -> bool:
    """Whether Kafka finds this in its own files, too.

    Kafka 4.3 calls the first record of every segment that does not start at 0 a jump: "-1 is followed by 33".
    A time index may point to a batch that compaction has emptied: "log timestamp: -1".
    """
    if EMPTIED.fullmatch(line):
        return compacted
    jump = JUMP.fullmatch(line)
    return jump is not None and (int(jump[1]) == -1 or (compacted and int(jump[2]) > int(jump[1])))
