"""A consumer stays with the process that made it."""

import multiprocessing
from multiprocessing.connection import Connection

from headrace import ClientError, Consumer
from wire.process import BrokerProcess
from wire.sdk import QUICK, fresh, numbers, topic_of


def test_a_child_is_told_to_make_its_own_and_the_parent_reads_on(broker: BrokerProcess) -> None:
    topic = topic_of(broker.bootstrap, numbers(3))
    with Consumer(broker.bootstrap, topic, group=fresh("group"), **QUICK) as consumer:
        messages = consumer.read(stop_at_end=True)
        assert next(messages).value == b"0"
        here, there = multiprocessing.Pipe()

        def work(there: Connection) -> None:
            for ask in (consumer.commit, consumer.lag, lambda: next(iter(consumer)), consumer.close):
                try:
                    there.send(str(ask()))
                except ClientError as error:
                    there.send(str(error))

        child = multiprocessing.get_context("fork").Process(target=work, args=(there,))
        child.start()
        told = [here.recv() if here.poll(30) else "nothing" for _ in range(4)]
        child.join(30)
        child.kill()
        assert [each.endswith("make one in the child") for each in told] == [True, True, True, False]
        assert told[3] == "None"  # the parent's is not closed by it
        assert [message.value for message in messages] == numbers(3)[1:]
