"""A broker of this version that has lost records, while the controller is of the previous version."""

from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic

from cluster.cluster import Cluster
from cluster.coordinators import Embedded
from cluster.test_losses import FIRST, TOPIC, damage_the_active_segment, kill_all, write
from cluster.waiting import until
from wire.confluent import read


def test_a_controller_of_the_previous_version_does_not_elect_a_broker_that_has_lost_records(
    previous: Path, tmp_path: Path
) -> None:
    values = [*FIRST, b"more", b"and more"]
    with Embedded(tmp_path) as coordinator:
        cluster = Cluster(tmp_path, coordinator)
        damaged, other, controller = (cluster.brokers[each] for each in (1, 2, 3))
        controller.use(previous)
        with cluster.running():
            topic = NewTopic(TOPIC, 1, replica_assignment=[[damaged.id, other.id]])
            admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
            admin.create_topics([topic])[TOPIC].result(timeout=30)
            write(cluster, values)
            kill_all(cluster)
            damage_the_active_segment(damaged)

            controller.start()
            damaged.start()
            until("it has left the ISR", lambda: damaged.id not in cluster.state(TOPIC, 0).isr)
            assert cluster.state(TOPIC, 0).leader != damaged.id
            cluster.start()
            cluster.heal()
            assert [message.value() for message in read(cluster.bootstrap, TOPIC)] == values
