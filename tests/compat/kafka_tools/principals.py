"""Java's text of X.500 names, and Kafka's mapping of names to principals, run by `Principals.java`.

A question is {"names": [DER in hexadecimal], "mapped": [[rules, name]]}; its answer is {"names": [text],
"mapped": ["name …", "no rule" or "invalid"]}.
"""

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from compat.kafka_tools.java import SHORT_LIVED, KafkaJava

PROGRAM: Final = Path(__file__).with_name("Principals.java")
TIMEOUT_S: Final = 120


class Answers(NamedTuple):
    names: Sequence[str]
    mapped: Sequence[str]


def ask_java(java: KafkaJava, names: Sequence[bytes], mapped: Sequence[tuple[str, str]]) -> Answers:
    """Return what Java and Kafka make of names in DER, and of pairs of rules and a name."""
    command = [str(java.java), *SHORT_LIVED, "-cp", f"{java.jars}/*", str(PROGRAM)]
    asked = json.dumps({"names": [each.hex() for each in names], "mapped": mapped}).encode()
    ran = subprocess.run(command, input=asked, capture_output=True, check=False, timeout=TIMEOUT_S)
    assert ran.returncode == 0, ran.stderr.decode()
    found = json.loads(ran.stdout)
    return Answers(found["names"], found["mapped"])
