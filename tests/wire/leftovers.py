"""What a test leaves behind in this process: threads and open files."""

import threading
from pathlib import Path
from typing import Final

JOIN_S: Final = 2.0  # more than the end of a session takes; a broker that runs is not waited for any longer


def in_use() -> tuple[list[threading.Thread], list[str]]:
    """The threads and open files of this process.

    A ZooKeeper session may be closed in the background. All such sessions have ended when this returns,
    those of earlier tests included.
    """
    for thread in threading.enumerate():
        if thread.name == "zookeeper-closing" or thread.name.endswith("(zk_loop)"):
            thread.join(JOIN_S)
    return threading.enumerate(), open_files()


def open_files() -> list[str]:
    files = []
    for link in Path("/proc/self/fd").iterdir():
        try:
            files.append(str(link.readlink()).partition(":")[0])
        except FileNotFoundError:
            continue  # the descriptor that lists the others
    return sorted(files)
