"""Apache ZooKeeper's own command line, which is its Java client, against both servers: the same output."""

import re
import subprocess
from pathlib import Path

import pyspark

from coordination.conftest import Server
from headrace.system.java import find_java

SCRIPT = """\
create /java hi
create -e /java/ephemeral x
create -s /java/numbered- y
ls -s /java
get -s /java
set -v 7 /java never
set -v 0 /java new
create /java/numbered-0000000001 again
delete /java
create /java/watched
get -w /java/watched
set /java/watched z
delete /java/watched
addauth digest ann:secret
create /java/private x auth::cdrwa
getAcl /java/private
setAcl /java/private world:anyone:r
set /java/private refused
ls -R /java
sync /java
config
create /java/last
deleteall /java/numbered-0000000001
get /missing
quit
"""
# What differs from one server and one run to the next.
PROMPT = re.compile(r"\[zk: [^\]]*\] ")
VARYING = re.compile(r"(main ERROR|[cmp]Zxid|[cm]time|zxid:|ephemeralOwner|Connecting to|jline|terminal)")


def said_by_the_command_line(server: Server) -> list[str]:
    jars = Path(pyspark.__file__).parent / "jars"
    command = [
        find_java("ZooKeeper"),
        "-cp",
        f"{jars}/*",
        "org.apache.zookeeper.ZooKeeperMain",
        "-server",
        server.address,
    ]
    ended = subprocess.run(
        [str(part) for part in command], input=SCRIPT, capture_output=True, text=True, check=False, timeout=60
    )
    said = PROMPT.sub("", ended.stdout) + ended.stderr
    events = [line.partition(" zxid")[0] for line in said.splitlines() if line.startswith("WatchedEvent")]
    return events + [line for line in said.splitlines() if line.strip() and not VARYING.search(line)]


def test_the_java_client_sees_no_difference(embedded: Server, apache_zookeeper: Server) -> None:
    ours, theirs = said_by_the_command_line(embedded), said_by_the_command_line(apache_zookeeper)

    assert "Created /java/last" in theirs  # it ran almost to its end
    assert sorted(ours) == sorted(theirs)
