"""`headrace up` as the tests of this directory see it: its memory, its sockets, what its log complains of."""

import os
from pathlib import Path
from typing import Final

from support.process import UpProcess

PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")


class BrokerProcess(UpProcess):
    """A broker with its coordinator, in a process that can be killed."""

    @property
    def log_dir(self) -> Path:
        return self.data / "broker-1"

    @property
    def rss_bytes(self) -> int:
        """The memory the process holds now."""
        return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * PAGE_BYTES

    @property
    def peak_rss_bytes(self) -> int:
        """The most memory the process has ever held."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) * 1024

    @property
    def cpu_s(self) -> float:
        """The CPU time the process has used."""
        stat = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK")

    @property
    def open_files(self) -> int:
        """How many descriptors the process has, sockets included."""
        return len(list(Path(f"/proc/{self.pid}/fd").iterdir()))

    @property
    def open_sockets(self) -> int:
        links = [str(link.readlink()) for link in Path(f"/proc/{self.pid}/fd").iterdir() if link.is_symlink()]
        return sum(link.startswith("socket:") for link in links)

    def complaints(self) -> list[str]:
        """Errors and stack traces in the broker's log: what no client may bring about."""
        lines = self.log.read_text().splitlines()
        return [line for line in lines if " ERROR " in line or line.startswith("Traceback")]
