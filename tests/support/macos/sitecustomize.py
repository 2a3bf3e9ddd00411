"""Makes a Python process on Linux, and its children, do without what macOS lacks.

- Functions and constants of Linux are gone, and sys.platform is "darwin".
- There is no /proc and no /sys.
- Two sockets cannot be bound to one port by SO_REUSEADDR.
- The limit on open files is 256, can be raised to 10,240, and is reported as unlimited; memory has no limit.

It is no macOS: kqueue, its file systems, its scheduler and its packages are not there.
"""

import _socket
import ctypes
import errno
import fcntl
import mmap
import os
import resource
import select
import selectors
import signal
import socket
import sys
import time
from collections.abc import Callable
from fnmatch import fnmatchcase
from types import ModuleType
from typing import Any

_MISSING: dict[ModuleType, tuple[str, ...]] = {
    fcntl: ("F_OFD_*", "F_SETPIPE*", "F_GETPIPE*", "F_ADD_SEALS", "F_GET_SEALS", "F_NOTIFY", "DN_*"),
    mmap: ("MAP_POPULATE", "MAP_STACK", "MADV_HUGE*", "MADV_DONTFORK"),
    os: (
        *(
            "EFD_*",
            "GRND_*",
            "MFD_*",
            "O_DIRECT",
            "O_LARGEFILE",
            "O_NOATIME",
            "O_PATH",
            "O_TMPFILE",
            "P_PIDFD",
        ),
        *("POSIX_FADV_*", "RWF_*", "SCHED_*", "SPLICE_*", "XATTR_*"),
        *("copy_file_range", "eventfd", "fdatasync", "getrandom", "getresgid", "getresuid", "getxattr"),
        *("listxattr", "memfd_create", "pidfd_open", "pipe2", "posix_fadvise", "posix_fallocate", "preadv"),
        *("pwritev", "removexattr", "sched_*", "setns", "setresgid", "setresuid", "setxattr", "splice"),
        "unshare",
    ),
    resource: ("RLIMIT_MSGQUEUE", "RLIMIT_NICE", "RLIMIT_OFILE", "RLIMIT_RT*", "RUSAGE_THREAD", "prlimit"),
    select: ("EPOLL*", "epoll"),
    signal: ("SIGPOLL", "SIGPWR", "SIGRT*", "SIGSTKFLT", "pidfd_send_signal", "sigtimedwait", "sigwaitinfo"),
    socket: (
        *("AF_ALG", "AF_NETLINK", "AF_PACKET", "AF_VSOCK", "MSG_CMSG_CLOEXEC", "MSG_CONFIRM", "MSG_ERRQUEUE"),
        *("MSG_FASTOPEN", "MSG_MORE", "MSG_NOSIGNAL", "SOCK_CLOEXEC", "SOCK_NONBLOCK", "SO_BINDTODEVICE"),
        *(
            "SO_DOMAIN",
            "SO_INCOMING_CPU",
            "SO_MARK",
            "SO_PASSCRED",
            "SO_PASSSEC",
            "SO_PEERCRED",
            "SO_PEERSEC",
        ),
        *("SO_PRIORITY", "SO_PROTOCOL", "TCP_CONGESTION", "TCP_CORK", "TCP_DEFER_ACCEPT", "TCP_KEEPIDLE"),
        *("TCP_LINGER2", "TCP_QUICKACK", "TCP_SYNCNT", "TCP_USER_TIMEOUT", "TCP_WINDOW_CLAMP"),
    ),
    time: ("CLOCK_BOOTTIME", "CLOCK_TAI"),
}
_MISSING_IN_C = frozenset({"adjtimex", "epoll_create", "memfd_create", "pidfd_open", "prctl"})
_HIDDEN = ("/proc", "/sys/")
_LISTEN = "0A"  # the state in /proc/net/tcp
_MOST_FILES = 10_240
_USUAL_FILES = 256

_hiding = True
with open("/proc/sys/kernel/random/boot_id", "rb") as _file:  # noqa: PTH123
    _BOOT_ID = _file.read().strip()


def _is_hidden(path: object) -> bool:
    text = os.fsdecode(path) if isinstance(path, str | bytes | os.PathLike) else ""
    return _hiding and text.startswith(_HIDDEN)


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if event in {"open", "os.listdir", "os.scandir"} and _is_hidden(arguments[0]):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), arguments[0])


def _hide_paths(module: ModuleType, name: str) -> None:
    real: Callable[..., Any] = getattr(module, name)

    def hiding(path: Any, *arguments: Any, **options: Any) -> Any:
        if _is_hidden(path):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return real(path, *arguments, **options)

    setattr(module, name, hiding)


def _has_connections(port: int) -> bool:
    """Whether connections have the port, also those in TIME_WAIT, and no socket listens on it."""
    global _hiding  # noqa: PLW0603
    _hiding = False
    try:
        lines = []
        for name in ("/proc/net/tcp", "/proc/net/tcp6"):
            with open(name) as file:  # noqa: PTH123
                lines += file.readlines()[1:]
    finally:
        _hiding = True
    states = [each.split()[3] for each in lines if int(each.split()[1].rpartition(":")[2], 16) == port]
    return bool(states) and _LISTEN not in states


def _bind(self: socket.socket, address: Any) -> None:
    if self.family in {socket.AF_INET, socket.AF_INET6} and address[1] and self.type == socket.SOCK_STREAM:
        with socket.socket(self.family, socket.SOCK_STREAM) as probe:
            if self.family == socket.AF_INET6:
                probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            try:
                _socket.socket.bind(probe, address)
            except OSError as error:
                if error.errno != errno.EADDRINUSE or not _has_connections(address[1]):
                    raise
    _socket.socket.bind(self, address)


def _getrlimit(which: int) -> tuple[int, int]:
    soft, hard = _real_getrlimit(which)
    return (soft, resource.RLIM_INFINITY) if which == resource.RLIMIT_NOFILE else (soft, hard)


def _setrlimit(which: int, limits: tuple[int, int]) -> None:
    soft, hard = limits
    if which == resource.RLIMIT_AS or (which == resource.RLIMIT_NOFILE and not 0 <= soft <= _MOST_FILES):
        raise ValueError("current limit exceeds maximum limit")
    _real_setrlimit(which, (soft, _real_getrlimit(which)[1] if hard == resource.RLIM_INFINITY else hard))


def _c_function(self: ctypes.CDLL, name: str) -> Any:
    if name == "sysctlbyname":
        return _sysctlbyname
    if name in _MISSING_IN_C:
        raise AttributeError(f"macOS has no {name}")
    return _real_c_function(self, name)


def _sysctlbyname(name: bytes, found: Any, size: Any, _new: None, _new_size: int) -> int:
    assert name == b"kern.bootsessionuuid"
    assert size._obj.value == len(found)
    found.value = _BOOT_ID
    return 0


for _module, _patterns in _MISSING.items():
    for _name in [each for each in vars(_module) if any(fnmatchcase(each, pattern) for pattern in _patterns)]:
        delattr(_module, _name)
# How this Python was built is in a module whose name has the real platform in it.
os.environ["_PYTHON_SYSCONFIGDATA_NAME"] = (
    f"_sysconfigdata_{sys.abiflags}_linux_{sys.implementation._multiarch}"
)
sys.platform = "darwin"
selectors.DefaultSelector = selectors.PollSelector  # type: ignore[assignment, misc]
del selectors.EpollSelector
sys.modules["_scproxy"] = ModuleType("_scproxy")  # the proxies in the system's settings
vars(sys.modules["_scproxy"]).update(_get_proxies=dict, _get_proxy_settings=dict)
fcntl.F_FULLFSYNC = 51  # type: ignore[attr-defined]  # Linux refuses it, as network drives of macOS do
_real_c_function = ctypes.CDLL.__getattr__
ctypes.CDLL.__getattr__ = _c_function  # type: ignore[method-assign]
socket.socket.bind = _bind  # type: ignore[assignment, method-assign]
_real_getrlimit, _real_setrlimit = resource.getrlimit, resource.setrlimit
resource.getrlimit, resource.setrlimit = _getrlimit, _setrlimit
_real_setrlimit(resource.RLIMIT_NOFILE, (_USUAL_FILES, _real_getrlimit(resource.RLIMIT_NOFILE)[1]))
for _name in ("stat", "lstat", "readlink", "access"):
    _hide_paths(os, _name)
sys.addaudithook(_audit)
