"""The jars of Spark's own Kafka connector, which ours is compared with; fetched once, each checked."""

import hashlib
from pathlib import Path
from typing import Final

from compat.kafka_tools.java import find_jars

POM: Final = Path(__file__).with_name("pom.xml")
SHA256: Final = {
    "commons-pool2-2.12.1.jar": "5273c8bc8c0dca2211175c0d27efbd7228efae99689aac001a8e1ef8e872e9ef",
    "kafka-clients-3.9.1.jar": "7568b998572d256f0b7bc0afdc1b7a2588b8b08415c62ce314c864a6851ae9d9",
    "spark-sql-kafka-0-10_2.13-4.2.0.jar": (
        "64539c45e5d39f7ddb747312c239f38f5208d08c1a0ddf7d70beb2fbd9373705"
    ),
    "spark-token-provider-kafka-0-10_2.13-4.0.0.jar": (
        "f2be3b76f9e6cbe63379d4e4e0dc14f59dbf056ae2ad16ff15ac108004c86767"
    ),
}


def connector_jars() -> list[Path]:
    """What `spark.jars` is to name; KafkaUnavailableError if they cannot be fetched."""
    directory = find_jars(POM)
    for name, expected in SHA256.items():
        found = hashlib.sha256((directory / name).read_bytes()).hexdigest()
        assert found == expected, f"{directory / name} is not the jar that was tested: sha256 {found}"
    return [directory / name for name in SHA256]
