"""Apache Kafka's own command-line tools, as people type them, against our broker.

A run of a tool is a Java of its own: half a second each, most of it the Java's start.
"""

import json
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from compat.kafka_tools.dumped import records
from compat.kafka_tools.java import KafkaJava
from compat.kafka_tools.tools import KafkaTools, complaints
from headrace.testing.cluster import Cluster
from wire.configs import GROUP, listed
from wire.process import BrokerProcess
from wire.raw import RawClient
from wire.requests import fresh_name

TIMEOUT_S: Final = 90
TOOLS: Final = "org.apache.kafka.tools"


@dataclass(frozen=True, slots=True)
class Shell:
    """Types `kafka-topics --bootstrap-server …` and the like; returns what they print."""

    java: KafkaJava
    broker: BrokerProcess | Cluster

    def topics(self, *arguments: str) -> str:
        return self._run(f"{TOOLS}.TopicCommand", *arguments)

    def configs(self, *arguments: str) -> str:
        return self._run("kafka.admin.ConfigCommand", *arguments)

    def produce(self, topic: str, text: str, *arguments: str) -> str:
        return self._run(f"{TOOLS}.ConsoleProducer", "--topic", topic, *arguments, text=text)

    def consume(self, topic: str, count: int, *arguments: str, partition: int = 0) -> list[str]:
        """The lines of the first `count` records of a partition; by partition, as there are no groups yet."""
        place = ("--partition", str(partition), "--offset", "earliest")
        limits = ("--max-messages", str(count), "--timeout-ms", "20000")
        tool = f"{TOOLS}.consumer.ConsoleConsumer"
        return self._run(tool, "--topic", topic, *limits, *(arguments or place)).splitlines()

    def tool(self, name: str, *arguments: str) -> str:
        return self._run(f"{TOOLS}.{name}", *arguments)

    def failure(self, name: str, *arguments: str) -> str:
        """What a tool prints that is to fail."""
        run = self._start(f"{TOOLS}.{name}", *arguments)
        assert run.returncode != 0, run.stdout
        return run.stdout + run.stderr

    def _run(self, main_class: str, *arguments: str, text: str | None = None) -> str:
        run = self._start(main_class, *arguments, text=text)
        assert run.returncode == 0, f"{main_class} {arguments}: {run.stdout}{run.stderr}"
        assert " ERROR " not in run.stderr, f"{main_class} {arguments}: {run.stdout}{run.stderr}"
        return run.stdout

    def _start(
        self, main_class: str, *arguments: str, text: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        bootstrap = ("--bootstrap-server", self.broker.bootstrap)
        commands_first = main_class.endswith("ClusterTool")  # the others want them last, if they have any
        arguments = (*arguments, *bootstrap) if commands_first else (*bootstrap, *arguments)
        command = self.java.command(main_class, *arguments)
        return subprocess.run(
            command, input=text, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path_factory.mktemp("java")) as process:
        yield process
        assert process.complaints() == []


@pytest.fixture(scope="module")
def shell(kafka_java: KafkaJava, broker: BrokerProcess) -> Shell:
    return Shell(kafka_java, broker)


def test_kafka_topics_creates_lists_describes_alters_and_deletes(shell: Shell) -> None:
    name = fresh_name("java")

    assert f"Created topic {name}." in shell.topics(
        "--create", "--topic", name, "--partitions", "3", "--config", "retention.ms=12345"
    )
    assert name in shell.topics("--list").splitlines()
    shell.topics("--alter", "--topic", name, "--partitions", "4")
    described = shell.topics("--describe", "--topic", name)
    shell.topics("--delete", "--topic", name)

    assert re.search(
        r"TopicId: \S{22}\tPartitionCount: 4\tReplicationFactor: 1\t.*retention.ms=12345", described
    )
    assert len(re.findall(r"Leader: 1\tReplicas: 1\tIsr: 1", described)) == 4
    assert name not in shell.topics("--list").splitlines()


@pytest.mark.parametrize(
    "codec",
    # tests/compat/test_record_batches.py and test_kafka_reads_our_logs.py have all codecs.
    ["none", "zstd", *(pytest.param(codec, marks=pytest.mark.long) for codec in ("gzip", "snappy", "lz4"))],
)
def test_what_the_console_producer_sends_the_console_consumer_prints(shell: Shell, codec: str) -> None:
    name = fresh_name("console")
    shell.topics("--create", "--topic", name)
    lines = [f"h:{number}\tkey-{number % 3}\tvalue-{number}" for number in range(50)]
    parsed = ("--reader-property", "parse.key=true", "--reader-property", "parse.headers=true")

    shell.produce(
        name, "\n".join(lines), "--compression-codec", codec, "--request-required-acks", "all", *parsed
    )

    everything = ("print.key=true", "print.headers=true", "print.offset=true")
    shown = [part for each in everything for part in ("--formatter-property", each)]
    printed = shell.consume(name, 50, "--partition", "0", "--offset", "earliest", *shown)
    assert printed == [f"Offset:{number}\t{line}" for number, line in enumerate(lines)]


def test_the_console_consumer_starts_at_an_offset_and_reads_committed(shell: Shell) -> None:
    name = fresh_name("console")
    shell.produce(name, "a\nb\nc\n")

    committed = ("--isolation-level", "read_committed")
    assert shell.consume(name, 2, "--partition", "0", "--offset", "1", *committed) == ["b", "c"]


def test_kafka_configs_describes_and_alters_topics_and_brokers(shell: Shell) -> None:
    name = fresh_name("configured")
    shell.topics("--create", "--topic", name)

    shell.configs(
        "--alter", "--topic", name, "--add-config", "segment.ms=7777,cleanup.policy=[compact,delete]"
    )
    altered = shell.configs("--describe", "--topic", name)
    shell.configs("--alter", "--topic", name, "--delete-config", "segment.ms")
    shell.configs("--alter", "--broker", "1", "--add-config", "log.retention.ms=98765432")
    broker = shell.configs("--describe", "--broker", "1")
    inherited = shell.configs("--describe", "--topic", name, "--all")

    assert "segment.ms=7777" in altered
    assert "cleanup.policy=compact,delete" in altered
    assert "log.retention.ms=98765432" in broker
    assert "retention.ms=98765432" in inherited
    assert "segment.ms=7777" not in inherited


def test_kafka_get_offsets_and_delete_records_agree(shell: Shell, tmp_path: Path) -> None:
    name = fresh_name("offsets")
    shell.topics("--create", "--topic", name, "--partitions", "1")
    shell.produce(name, "a\nb\nc\nd\n")
    until_two = {"version": 1, "partitions": [{"topic": name, "partition": 0, "offset": 2}]}
    (tmp_path / "offsets.json").write_text(json.dumps(until_two))

    deleted = shell.tool("DeleteRecordsCommand", "--offset-json-file", str(tmp_path / "offsets.json"))

    assert f"partition: {name}-0\tlow_watermark: 2" in deleted
    for time, offset in (("latest", 4), ("earliest", 2), ("max-timestamp", 3)):
        found = shell.tool("GetOffsetShell", "--topic", name, "--time", time).strip()
        if time == "max-timestamp":  # records of one millisecond share it
            assert found in {f"{name}:0:2", f"{name}:0:3"}
        else:
            assert found == f"{name}:0:{offset}"


def test_kafka_log_dirs_shows_every_partition(shell: Shell, broker: BrokerProcess) -> None:
    name = fresh_name("sized")
    shell.topics("--create", "--topic", name, "--partitions", "2")
    shell.produce(name, "a\n")

    printed = shell.tool("LogDirsCommand", "--describe", "--topic-list", name).splitlines()[-1]

    (only,) = json.loads(printed)["brokers"]
    (directory,) = only["logDirs"]
    sizes = {each["partition"]: each["size"] for each in directory["partitions"]}
    on_disk = {
        f"{name}-{number}": sum(
            log.stat().st_size for log in (broker.log_dir / f"{name}-{number}").glob("*.log")
        )
        for number in (0, 1)
    }
    assert directory["error"] is None
    assert sizes == on_disk


def test_the_performance_tools_move_what_they_say(shell: Shell) -> None:
    name = fresh_name("perf")
    shell.topics("--create", "--topic", name, "--partitions", "1")

    sent = shell.tool(
        "ProducerPerformance",
        "--topic",
        name,
        "--num-records",
        "20000",
        "--record-size",
        "100",
        "--throughput=-1",
    )

    assert "20000 records sent" in sent
    assert shell.tool("GetOffsetShell", "--topic", name).strip() == f"{name}:0:20000"


def test_the_verifiable_producer_finds_every_record_acknowledged(shell: Shell) -> None:
    name = fresh_name("verified")

    printed = shell.tool("VerifiableProducer", "--topic", name, "--max-messages", "500", "--acks=-1")

    events = [json.loads(line) for line in printed.splitlines()]
    offsets = [event["offset"] for event in events if event["name"] == "producer_send_success"]
    assert offsets == list(range(500))
    assert events[-1]["acked"] == 500


def test_the_cluster_tells_its_id_versions_and_endpoints(shell: Shell, broker: BrokerProcess) -> None:
    host, _, port = broker.bootstrap.rpartition(":")

    identity = shell.tool("ClusterTool", "cluster-id")
    endpoints = shell.tool("ClusterTool", "list-endpoints")
    versions = shell.tool("BrokerApiVersionsCommand")

    assert re.fullmatch(r"Cluster ID: \S{22}\n", identity)
    assert re.search(rf"1 +{re.escape(host)} +{port} ", endpoints)
    assert "Produce(0): 0 to 13 [usable: 13]" in versions
    assert "Fetch(1): 4 to 18 [usable: 18]" in versions


def test_kafka_features_and_kafka_metadata_quorum_describe_the_cluster(shell: Shell) -> None:
    features = shell.tool("FeatureCommand", "describe")
    kept = shell.tool("FeatureCommand", "upgrade", "--feature", "group.version=1")
    refused = shell.failure("FeatureCommand", "downgrade", "--feature", "transaction.version=1")
    status = shell.tool("MetadataQuorumCommand", "describe", "--status")
    replication = shell.tool("MetadataQuorumCommand", "describe", "--replication")

    levels = re.findall(r"Feature: (\S+) .*FinalizedVersionLevel: (\d)", features)
    assert levels == [("group.version", "1"), ("transaction.version", "2")]
    assert "group.version was upgraded to 1." in kept
    assert "transaction.version cannot be set to 1: it is always 2" in refused
    assert re.search(r"LeaderId: +1\nLeaderEpoch: +[1-9]", status)
    assert re.search(r"^1 .*Leader", replication, re.MULTILINE)


def test_the_transactions_tool_shows_an_idempotent_producer(shell: Shell) -> None:
    name = fresh_name("producers")
    shell.topics("--create", "--topic", name, "--partitions", "1")
    shell.produce(name, "a\nb\n")  # idempotent by default

    printed = shell.tool("TransactionsCommand", "describe-producers", "--topic", name, "--partition", "0")

    header, row = printed.strip().splitlines()
    assert dict(zip(header.split("\t"), row.split("\t"), strict=False))["LastSequence"].strip() == "1"


def test_kafka_configs_alters_what_kafka_alters_at_run_time(shell: Shell) -> None:
    threads = "num.io.threads=16,num.network.threads=6,log.cleaner.threads=2"
    others = "max.connections=5000,producer.id.expiration.ms=1000000,log.cleaner.backoff.ms=1000"

    shell.configs("--alter", "--broker-defaults", "--add-config", f"{threads},{others}")
    described = shell.configs("--describe", "--broker-defaults")
    names = ",".join(each.partition("=")[0] for each in f"{threads},{others}".split(","))
    shell.configs("--alter", "--broker-defaults", "--delete-config", f"{names},background.threads")

    assert all(each in described for each in f"{threads},{others}".split(","))


def test_kafka_configs_describes_and_alters_groups(shell: Shell, broker: BrokerProcess) -> None:
    shell.configs("--alter", "--group", "paced", "--add-config", "consumer.session.timeout.ms=50000")
    groups = shell.configs("--describe", "--entity-type", "groups")

    assert "Dynamic configs for group paced are:" in groups
    assert "consumer.session.timeout.ms=50000" in groups
    with RawClient(broker.bootstrap) as client:
        assert listed(client, GROUP) == [(GROUP, "paced")]


def test_kafka_reassign_partitions_verifies_and_removes_its_throttles(
    kafka_java: KafkaJava, tmp_path: Path
) -> None:
    name = fresh_name("moved")
    with Cluster(brokers=2) as cluster:
        cluster.create_topic(name, replicas=1)
        shell = Shell(kafka_java, cluster)
        (leader,) = cluster.admin.describe_topic(name).partitions[0].replicas
        other = 3 - leader
        directory = next(
            each.value for each in cluster.admin.broker_configs(other) if each.name == "log.dirs"
        )
        partition = {"topic": name, "partition": 0, "replicas": [other], "log_dirs": [directory]}
        plan = tmp_path / "plan.json"
        plan.write_text(json.dumps({"version": 1, "partitions": [partition]}))
        file = ("--reassignment-json-file", str(plan))
        rates = ("--throttle", "100000000", "--replica-alter-log-dirs-throttle", "100000000")

        shell.tool("reassign.ReassignPartitionsCommand", "--execute", *file, *rates)
        throttled = throttles(cluster, name)
        printed = ""
        while "is completed" not in printed:
            assert "in progress" in printed or not printed, printed
            printed = shell.tool("reassign.ReassignPartitionsCommand", "--verify", *file)

        assert len(throttled) > 2
        assert "Clearing broker-level throttles" in printed
        assert "Clearing topic-level throttles" in printed
        assert throttles(cluster, name) == []
        assert cluster.admin.describe_topic(name).partitions[0].replicas == (other,)


def throttles(cluster: Cluster, topic: str) -> list[str]:
    """What is set of the settings that slow moves down."""
    found = [each for broker_id in cluster.brokers for each in cluster.admin.broker_configs(broker_id)]
    found += cluster.admin.topic_configs(topic)
    words = ("throttled", "replica.alter.log.dirs.io")
    return [each.name for each in found if not each.is_default and any(word in each.name for word in words)]


def test_a_transactional_producer_writes_each_record_once(shell: Shell) -> None:
    """Java's producer uses transaction version 2: it adds partitions with Produce, and bumps its epoch."""
    name, transactional_id = fresh_name("transactional"), fresh_name("java")
    shell.topics("--create", "--topic", name, "--partitions", "3")
    load = ("--topic", name, "--num-records", "2000", "--record-size", "10", "--throughput", "-1")

    transactions = ("--transactional-id", transactional_id, "--transaction-duration-ms", "5")
    printed = shell.tool("ProducerPerformance", *load, *transactions)

    assert "2000 records sent" in printed
    described = shell.tool("TransactionsCommand", "describe", "--transactional-id", transactional_id)
    assert "CompleteCommit" in described
    assert transactional_id in shell.tool("TransactionsCommand", "list")
    read = shell.tool(
        "consumer.ConsoleConsumer",
        *("--topic", name, "--from-beginning", "--max-messages", "2000"),
        *("--command-property", "isolation.level=read_committed", "--timeout-ms", "20000"),
    )
    assert len(read.split()) == 2000


def test_kafka_dump_log_reads_our_transaction_state(
    shell: Shell, kafka_tools: KafkaTools, broker: BrokerProcess
) -> None:
    name, transactional_id = fresh_name("transactional"), fresh_name("java")
    shell.topics("--create", "--topic", name, "--partitions", "1")
    load = ("--topic", name, "--num-records", "10", "--record-size", "10", "--throughput", "-1")
    shell.tool("ProducerPerformance", *load, "--transactional-id", transactional_id)
    broker.stop()
    try:
        files = sorted(broker.log_dir.glob("__transaction_state-*/0*.log"))
        output = kafka_tools.dump_log_segments(files, extra=("--transaction-log-decoder",))
    finally:
        broker.start()

    assert complaints(output) == []
    lines = [line for line in output.splitlines() if transactional_id in line]
    assert [re.findall(r'"transactionStatus":(\d)', line) for line in lines] == [["0"], ["1"], ["2"], ["4"]]


def test_kafka_dump_log_reads_what_java_wrote_through_us(
    shell: Shell, kafka_tools: KafkaTools, broker: BrokerProcess
) -> None:
    name = fresh_name("dumped")
    shell.topics("--create", "--topic", name, "--partitions", "1")
    shell.produce(name, "a\nb\nc\n")
    broker.stop()
    try:
        files = sorted((broker.log_dir / f"{name}-0").glob("0*"))
        output = kafka_tools.dump_log_segments(files, extra=("--print-data-log",))
    finally:
        broker.start()

    assert complaints(output) == []
    assert [record["value"] for record in records(output.splitlines())] == ["a", "b", "c"]
    assert shell.consume(name, 3) == ["a", "b", "c"]


@pytest.mark.long  # ten tools one after the other; tests/wire and tests/cli set quotas by the same requests
def test_kafka_configs_sets_describes_and_deletes_quotas_next_to_credentials(shell: Shell) -> None:
    user = ("--entity-type", "users", "--entity-name", "alice")
    app = ("--entity-type", "clients", "--entity-name", "app")
    address = ("--entity-type", "ips", "--entity-name", "10.9.8.7")
    shell.configs("--alter", *user, "--add-config", "SCRAM-SHA-256=[password=secret]")
    shell.configs("--alter", *user, "--add-config", "producer_byte_rate=1000000")
    shell.configs("--alter", *user, *app, "--add-config", "request_percentage=5000")
    shell.configs("--alter", *address, "--add-config", "connection_creation_rate=100")

    described = shell.configs("--describe", "--entity-type", "users")
    assert "Quota configs for user-principal 'alice' are producer_byte_rate=1000000.0" in described
    assert (
        "SCRAM credential configs for user-principal 'alice' are SCRAM-SHA-256=iterations=4096" in described
    )
    assert "'app' are request_percentage=5000.0" in shell.configs("--describe", *user, *app)
    assert "connection_creation_rate=100.0" in shell.configs("--describe", "--entity-type", "ips")

    shell.configs("--alter", *user, "--delete-config", "producer_byte_rate")
    shell.configs("--alter", *user, *app, "--delete-config", "request_percentage")
    described = shell.configs("--describe", *user)
    assert "Quota" not in described
    assert "SCRAM-SHA-256" in described
