"""What the doctor says of facts: no machine, no socket, no broker."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from headrace.client.cluster.log_dirs import LogDir
from headrace.client.cluster.moves import Reassignment
from headrace.client.cluster.status import SILENT, UP, Broker, ClusterStatus, PartitionState, cluster_status
from headrace.client.doctor import cluster as doctor_cluster
from headrace.client.doctor import data as doctor_data
from headrace.client.doctor import groups as doctor_groups
from headrace.client.doctor import machine as doctor_machine
from headrace.client.doctor import security as doctor_security
from headrace.client.doctor.cluster import ClusterFacts, Reached, TopicSafety, View
from headrace.client.doctor.data import BrokerDirectory, Damage, Disk
from headrace.client.doctor.diagnosis import OK, PROBLEM, WARNING, Area, Finding, diagnosis, some
from headrace.client.doctor.groups import GroupFacts
from headrace.client.doctor.machine import Machine, Port
from headrace.client.doctor.security import SecurityFacts
from headrace.protocol.ids import TopicPartition
from headrace.protocol.locations import Location

AREA = Area("cluster")
GIB = 1024**3

MACHINE = Machine(
    python=(3, 11, 7),
    cores=4,
    open_files=1_048_576,
    memory_bytes=16 * GIB,
    available_bytes=8 * GIB,
    swap_bytes=0,
    swappiness=60,
    huge_pages="madvise",
    clock_synchronised=True,
    java="/usr/bin/java",
    parts={"pyspark": "4.2", "deltalake": None},
    ports=(Port(number=9092, free=True),),
    disk=Disk(path="/data", total_bytes=100 * GIB, free_bytes=60 * GIB, sync_ms=0.8),
)
DIRECTORY = BrokerDirectory(
    path="/data/broker-1", broker_id=1, cluster_id="c", held_by=None, clean=True, partitions=3, verified=3
)
GROUP = GroupFacts(
    name="billing", members=2, state="Stable", lag_before=10, lag=5, committed_before=100, committed=150
)


def states(findings: list[Finding]) -> dict[str, str]:
    """The states that are not fine, by what was checked."""
    return {each.check: each.state for each in findings if each.state != OK}


def machine(**changed: object) -> dict[str, str]:
    return states(list(doctor_machine.examine(replace(MACHINE, **changed))))  # type: ignore[arg-type]


def disk(**changed: object) -> dict[str, str]:
    return machine(disk=replace(MACHINE.disk, **changed))  # type: ignore[type-var]


def cluster(
    *partitions: PartitionState, brokers: int = 3, silent: int | None = None, controller: int | None = 1
) -> ClusterFacts:
    nodes = [
        Broker(
            id=number,
            host="h",
            port=9091 + number,
            rack=None,
            state=SILENT if number == silent else UP,
            pid=number,
        )
        for number in range(1, brokers + 1)
    ]
    view = View(controller=1, brokers=(1, 2, 3), leaders=frozenset({("t", 0, 1)}))
    return ClusterFacts(
        status=cluster_status(cluster_id="c", controller=controller, nodes=nodes, partitions=partitions),
        views=dict.fromkeys(range(1, brokers + 1), view),
        log_dirs={1: (log_dir(free=50),)},
        topics={"t": TopicSafety(replicas=3, min_in_sync=2, unclean=False)},
    )


def on_nodes(nodes: dict[int, Location], *replicas: int) -> ClusterStatus:
    """A cluster whose only partition has these replicas."""
    brokers = [Broker(id=each, rack=where.rack, node=where.node, state=UP) for each, where in nodes.items()]
    placed = PartitionState(topic="t", partition=0, leader=1, replicas=replicas, in_sync=replicas)
    return cluster_status(cluster_id="c", controller=1, nodes=brokers, partitions=[placed])


def log_dir(*, free: int, error: str | None = None) -> LogDir:
    return LogDir(
        path="/d", size_bytes=1, total_bytes=100 * GIB, usable_bytes=free * GIB, error=error, replicas=()
    )


def partition(*in_sync: int, leader: int | None = 1, min_in_sync: int = 1) -> PartitionState:
    return PartitionState(
        topic="t", partition=0, leader=leader, replicas=(1, 2, 3), in_sync=in_sync, min_in_sync=min_in_sync
    )


def seen(facts: ClusterFacts) -> dict[str, str]:
    return states(list(doctor_cluster.examine(AREA, facts)))


def test_a_good_machine_is_fine_in_every_respect() -> None:
    assert machine() == {}


def test_what_is_wrong_with_a_machine_is_graded() -> None:
    assert machine(python=(3, 10, 1)) == {"python": PROBLEM}
    assert machine(cores=1) == {"cores": WARNING}
    assert machine(open_files=512) == {"open files": PROBLEM}
    assert machine(open_files=2048) == {"open files": WARNING}
    assert machine(open_files=None) == {}
    assert machine(available_bytes=GIB) == {"memory": WARNING}
    assert machine(available_bytes=GIB // 10) == {"memory": PROBLEM}
    assert machine(clock_synchronised=False) == {"clock": WARNING}
    assert machine(huge_pages="always") == {"huge pages": WARNING}
    assert machine(java=None) == {"spark": WARNING}
    assert machine(java=None, parts={"pyspark": None}) == {}


def test_swappiness_matters_only_where_there_is_swap() -> None:
    assert machine(swap_bytes=GIB) == {"swap": WARNING}
    assert machine(swap_bytes=GIB, swappiness=1) == {}


def test_a_port_that_is_taken_matters_unless_another_one_will_do() -> None:
    assert machine(ports=(Port(number=9092, free=False),)) == {"port 9092": WARNING}
    assert machine(ports=(Port(number=8080, free=False, otherwise="another one is used"),)) == {}


def test_a_disk_is_full_slow_or_not_to_be_written_to() -> None:
    assert disk(free_bytes=10 * GIB) == {"disk": WARNING}
    assert disk(free_bytes=2 * GIB) == {"disk": PROBLEM}
    assert disk(total_bytes=5 * GIB, free_bytes=GIB // 2) == {"disk": PROBLEM}
    assert disk(sync_ms=50.0) == {"fsync": WARNING}
    assert disk(sync_ms=500.0) == {"fsync": PROBLEM}
    assert disk(sync_ms=None, why="read-only file system") == {"disk": PROBLEM}


def test_whatever_is_not_fine_comes_with_what_to_do() -> None:
    worst = replace(MACHINE, python=(3, 9, 0), cores=1, open_files=9, huge_pages="always", java=None)
    bad = [each for each in doctor_machine.examine(worst) if each.state != OK]
    assert len(bad) == 5
    assert all(each.do for each in bad)
    found = diagnosis(doctor_machine.examine(worst))
    assert (found.problems, found.warnings) == (2, 3)


def test_a_good_cluster_is_fine_in_every_respect() -> None:
    assert seen(cluster(partition(1, 2, 3))) == {}


def test_brokers_that_lack_or_hang_and_a_missing_controller_are_problems() -> None:
    assert seen(cluster(partition(1, 2, 3), silent=2)) == {"brokers": PROBLEM}
    assert seen(cluster(partition(1, 2), brokers=2)) == {"brokers": PROBLEM, "under-replicated": WARNING}
    assert seen(cluster(partition(1, 2, 3), controller=None)) == {"controller": PROBLEM}


def test_a_partition_is_named_by_the_worst_that_can_be_said_of_it() -> None:
    assert seen(cluster(partition(1, 2))) == {"under-replicated": WARNING}
    assert seen(cluster(partition(1, min_in_sync=2))) == {"under min ISR": PROBLEM}
    assert seen(cluster(partition(leader=None))) == {"leaderless": PROBLEM, "under min ISR": PROBLEM}
    assert seen(cluster(partition(1, 2, 3, leader=2))) == {"leaders": WARNING}


def test_a_broker_that_sees_another_cluster_than_the_rest_is_named() -> None:
    facts = cluster(partition(1, 2, 3))
    odd = View(controller=3, brokers=(1, 2, 3), leaders=frozenset({("t", 0, 1)}))
    found = list(doctor_cluster.examine(AREA, replace(facts, views={**facts.views, 2: odd})))
    assert states(found) == {"views": PROBLEM}
    (finding,) = [each for each in found if each.check == "views"]
    assert finding.says.startswith("Broker 2 has another controller")


def test_disks_are_judged_by_the_fullest() -> None:
    facts = cluster(partition(1, 2, 3))
    assert seen(replace(facts, log_dirs={1: (log_dir(free=50),), 2: (log_dir(free=10),)})) == {
        "disk": WARNING
    }
    assert seen(replace(facts, log_dirs={1: (log_dir(free=2),)})) == {"disk": PROBLEM}
    assert seen(replace(facts, log_dirs={1: (log_dir(free=50, error="storage error"),)})) == {"disk": PROBLEM}


def test_settings_that_lose_records_are_pointed_out_where_there_are_several_brokers() -> None:
    def safety(*, replicas: int = 3, min_in_sync: int = 2, unclean: bool = False, brokers: int = 3) -> object:
        topic = TopicSafety(replicas=replicas, min_in_sync=min_in_sync, unclean=unclean)
        return seen(replace(cluster(partition(1, 2, 3), brokers=brokers), topics={"t": topic}))

    assert safety(replicas=1, min_in_sync=1) == {"copies": WARNING}
    assert safety(min_in_sync=1) == {"min.insync.replicas": WARNING}
    assert safety(unclean=True) == {"unclean elections": WARNING}
    alone = PartitionState(topic="t", partition=0, leader=1, replicas=(1,), in_sync=(1,))
    single = TopicSafety(replicas=1, min_in_sync=1, unclean=False)
    assert seen(replace(cluster(alone, brokers=1), topics={"t": single})) == {}


def test_what_stands_beside_the_brokers_has_to_answer() -> None:
    silent = (Reached(address="h:2181", answers=False, why="connection refused"),)
    facts = cluster(partition(1, 2, 3))
    assert seen(replace(facts, coordination=silent)) == {"zookeeper": PROBLEM}
    assert seen(replace(facts, http=silent)) == {"http": PROBLEM}


def groups(**changed: object) -> dict[str, str]:
    return states(list(doctor_groups.examine(AREA, [replace(GROUP, **changed)])))  # type: ignore[arg-type]


def test_groups_that_fall_behind_hang_or_are_left_are_told_apart() -> None:
    assert groups() == {}
    assert groups(lag=50) == {"lag": WARNING}
    assert groups(committed=100) == {"lag": WARNING}
    assert groups(members=0) == {"abandoned": WARNING}
    assert groups(members=0, lag=0) == {}


def data(**changed: object) -> dict[str, str]:
    return states(list(doctor_data.examine(replace(DIRECTORY, **changed))))  # type: ignore[arg-type]


def test_a_directory_is_fine_unless_something_in_it_is_damaged() -> None:
    damage = Damage(path="t-0/0.log", says="a checksum is wrong", last=True)
    assert data() == {}
    assert data(damages=(damage,)) == {"damage": PROBLEM}
    assert data(strangers=("photos",)) == {"strangers": PROBLEM}
    assert data(unreadable="meta.properties is not a properties file") == {"owner": PROBLEM}
    assert data(leftovers=("t-1.deleted",)) == {}


def test_a_torn_end_after_a_crash_is_no_damage() -> None:
    torn = Damage(path="t-0/5.log", says="it ends in the middle", last=True)
    inside = Damage(path="t-0/0.log", says="a checksum is wrong", last=False)
    assert data(clean=False) == {"stopped": WARNING}
    assert data(clean=False, damages=(torn,)) == {"stopped": WARNING, "torn ends": WARNING}
    assert data(clean=False, damages=(inside,)) == {"stopped": WARNING, "damage": PROBLEM}


def test_of_many_a_few_are_named() -> None:
    assert some(["a", "b"]) == "a, b"
    assert some(range(1, 8)) == "1, 2, 3 and 4 more"


# -- security ---------------------------------------------------------------------------------------

NOW = datetime(2030, 1, 1, tzinfo=UTC)
LOCAL = {"listeners": "PLAINTEXT://127.0.0.1:9092", "authorizer.class.name": ""}
SAFE = {
    "listeners": "CLIENTS://0.0.0.0:9092,INSIDE://127.0.0.1:9093",
    "listener.security.protocol.map": "CLIENTS:SASL_SSL,INSIDE:PLAINTEXT",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "false",
}


def security(*brokers: dict[str, str], **days: int) -> dict[str, str]:
    ends = {address: NOW + timedelta(days=each) for address, each in days.items()}
    facts = SecurityFacts(settings=dict(enumerate(brokers, start=1)), certificates=ends)
    return states(list(doctor_security.examine(AREA, facts, NOW)))


def test_a_cluster_on_the_loopback_need_not_be_secured() -> None:
    assert security(LOCAL) == {}
    assert security(LOCAL | {"listeners": "PLAINTEXT://[::1]:9092,OTHER://localhost:1"}) == {}


def test_a_secured_cluster_is_fine() -> None:
    assert security(SAFE, SAFE, one=31) == {}


@pytest.mark.parametrize("host", ["", "0.0.0.0", "10.0.0.7", "[::]", "broker.example"])
def test_what_other_machines_can_enter_is_a_warning(host: str) -> None:
    found = security({"listeners": f"PLAINTEXT://{host}:9092", "authorizer.class.name": ""})

    assert found == {"listeners": WARNING, "acls": WARNING}


def test_passwords_that_can_be_read_on_the_network_are_a_warning() -> None:
    protocols = {"listener.security.protocol.map": "CLIENTS:SASL_PLAINTEXT,INSIDE:PLAINTEXT"}

    assert security(SAFE | protocols) == {"listeners": WARNING}


def test_a_broker_without_the_authorizer_of_the_others_is_a_warning() -> None:
    assert security(SAFE, SAFE | {"authorizer.class.name": ""}) == {"acls": WARNING}
    assert security(SAFE | {"allow.everyone.if.no.acl.found": "true"}) == {"acls": WARNING}


def test_a_gateway_that_is_open_to_other_machines_is_a_warning() -> None:
    open_ = {"http.listener": "0.0.0.0:8080", "http.allow.unauthenticated": "true"}

    assert security(SAFE | open_) == {"http access": WARNING}
    assert security(SAFE | open_ | {"http.listener": "127.0.0.1:8080"}) == {}


def test_certificates_are_renewed_in_time() -> None:
    assert security(SAFE, one=30, two=400) == {"certificates": WARNING}
    assert security(SAFE, one=-1) == {"certificates": PROBLEM}


EAST, WEST = Location(node="east"), Location(node="west")


def node_findings(status: ClusterStatus, replicas: int) -> list[Finding]:
    topics = {"t": TopicSafety(replicas=replicas, min_in_sync=1, unclean=False)}
    facts = ClusterFacts(status=status, views={}, log_dirs={}, topics=topics)
    return [each for each in doctor_cluster.examine(AREA, facts) if each.check == "nodes"]


@pytest.mark.parametrize(
    ("nodes", "replicas", "sentence"),
    [
        ({1: EAST, 2: EAST, 11: WEST}, [1, 2], "t-0: replicas are on the same node"),
        ({1: EAST, 2: EAST, 11: WEST}, [1, 2, 11], "t has more replicas than there are nodes (2)"),
    ],
)
def test_what_is_wrong_with_nodes_is_said(
    nodes: dict[int, Location], replicas: list[int], sentence: str
) -> None:
    (finding,) = node_findings(on_nodes(nodes, *replicas), len(replicas))
    assert finding.state == WARNING
    assert finding.says.startswith(sentence)


def test_nodes_with_replicas_on_each_are_fine() -> None:
    (finding,) = node_findings(on_nodes({1: EAST, 2: EAST, 11: WEST}, 1, 11), 2)
    assert finding.state == OK


def test_brokers_without_nodes_are_not_examined_for_them() -> None:
    assert "nodes" not in {each.check for each in doctor_cluster.examine(AREA, cluster())}


def test_a_throttle_that_was_left_behind_is_named() -> None:
    left = replace(cluster(partition(1, 2, 3)), throttled=(1, 2))
    assert seen(left) == {"throttle": WARNING}
    moved = Reassignment(topic="t", partition=0, replicas=(1, 2, 3), adding=(3,), removing=())
    assert seen(replace(left, status=replace(left.status, reassignments=(moved,)))) == {}


def test_damaged_segments_are_named_with_the_broker_and_whether_another_replica_may_have_the_records() -> (
    None
):
    facts = cluster(partition(1, 2, 3))
    orders = TopicPartition("t", 0)
    repairable = replace(facts, damaged={orders: {2: 40}})
    assert seen(repairable) == {"damage": WARNING}
    (finding,) = [each for each in doctor_cluster.examine(AREA, repairable) if each.check == "damage"]
    assert finding.says.startswith("t-0 (40 offsets on broker 2): ")

    assert seen(replace(facts, damaged={orders: {1: 4, 2: 4, 3: 4}})) == {"damage": PROBLEM}
