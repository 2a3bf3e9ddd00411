"""Who comes back first: one that missed what was promised must wait for one that did not."""

from cluster.brokers import BrokerProcess
from cluster.probes import ACKS_ALL, led_by_a_probe
from cluster.probes import TOPIC as PROBES
from cluster.stage import Scene
from cluster.waiting import until
from cluster.workload import PARTITIONS, TOPIC
from wire.confluent import read


def a_broker_that_missed_something_comes_back_first(scene: Scene) -> None:
    """It has less than what was acknowledged: nobody leads until one of the others is back."""
    cluster = scene.cluster
    late, *others = cluster.brokers.values()
    late.kill()
    until("it is not in sync", lambda: not _in_sync(scene, late))
    scene.workload.progress()
    for broker in others:
        broker.kill()
    late.start()
    until("the others are gone for everybody", lambda: cluster.registered() == [late.id])
    led = [each for each in range(PARTITIONS) if cluster.state(TOPIC, each).leader == late.id]
    if led:
        scene.problem(f"broker {late.id} leads {led}, and lacks what the others have acknowledged")
    for broker in others:
        broker.start()
    cluster.heal()


def a_topic_may_lose_records_and_does(scene: Scene) -> None:
    """With unclean elections allowed one that lacks records leads, and says so; the others follow it back."""
    cluster = scene.cluster
    late, *others = cluster.brokers.values()
    _, probe = led_by_a_probe(cluster, others[0].id, unclean_leader_election_enable="true")
    late.kill()
    until("it is not in sync", lambda: late.id not in cluster.state(PROBES, 0).isr)
    until("it is missed", lambda: probe.write(b"lost", ACKS_ALL))
    probe.close()
    for broker in others:
        broker.kill()
    late.start()
    until("it leads what may lose records", lambda: cluster.state(PROBES, 0).leader == late.id)
    late.wait_for_log("records may be lost")
    scene.forgiven.add(late.id)
    for broker in others:
        broker.start()
    cluster.heal()
    found = [message.value() for message in read(cluster.bootstrap, PROBES)]
    if b"lost" in found:
        scene.problem(f"what only the others had is there again: {found}")


def the_last_one_standing_dies(scene: Scene) -> None:
    """One after the other goes; alone the last can promise nothing, so the one before it may lead as well."""
    cluster = scene.cluster
    first, second, last = cluster.brokers.values()
    first.kill()
    scene.workload.progress()
    second.kill()
    until("the last is alone in sync", lambda: _is_alone(scene, last))
    last.kill()
    second.start()
    until("the second leads", lambda: _leads_all(scene, second))
    first.start()
    scene.workload.progress()
    last.start()
    cluster.heal()


def _in_sync(scene: Scene, broker: BrokerProcess) -> list[int]:
    """The partitions that the broker is in sync with."""
    return [each for each in range(PARTITIONS) if broker.id in scene.cluster.state(TOPIC, each).isr]


def _is_alone(scene: Scene, broker: BrokerProcess) -> bool:
    return all(scene.cluster.state(TOPIC, each).isr == (broker.id,) for each in range(PARTITIONS))


def _leads_all(scene: Scene, broker: BrokerProcess) -> bool:
    return all(scene.cluster.state(TOPIC, each).leader == broker.id for each in range(PARTITIONS))
