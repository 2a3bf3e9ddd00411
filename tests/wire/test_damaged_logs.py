"""One damaged log takes its own partition offline, and nothing else."""

from pathlib import Path

from headrace.protocol.errors import ErrorCode
from headrace.protocol.schema.delete_topics import DeleteTopicsRequest
from support.records import make_batch
from wire.process import BrokerProcess
from wire.raw import RawClient
from wire.requests import create_topic, fetch, produce, records_in


def test_a_log_that_cannot_be_opened_keeps_no_other_from_being_served(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path) as broker:
        with RawClient(broker.bootstrap) as client:
            for topic in ("sound", "damaged"):
                create_topic(client, topic, flush_messages="1")
                produce(client, topic, make_batch([b"x" * 500]))
        broker.stop()  # everything is flushed: what is wrong from now on is no torn tail
        broker.start()
        broker.kill()
        (log,) = (broker.log_dir / "damaged-0").glob("*.log")
        content = bytearray(log.read_bytes())
        content[100] ^= 1
        log.write_bytes(content)

        broker.start()

        with RawClient(broker.bootstrap) as client:
            assert len(records_in(fetch(client, "sound"))) == 1
            assert produce(client, "sound").error_code == 0
            assert fetch(client, "damaged").error_code == ErrorCode.KAFKA_STORAGE_ERROR
            assert produce(client, "damaged").error_code == ErrorCode.KAFKA_STORAGE_ERROR
            client.ask(DeleteTopicsRequest(topic_names=["damaged"], timeout_ms=5000), 5)
            create_topic(client, "damaged")
            assert produce(client, "damaged").base_offset == 0


def test_a_missing_closed_segment_is_an_error_for_its_offsets_only(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path) as broker:
        with RawClient(broker.bootstrap) as client:
            create_topic(client, "orders", segment_bytes="2000")
            for _ in range(9):  # three in each segment
                produce(client, "orders", make_batch([b"x" * 500]))
        broker.stop()
        _, second, *_ = sorted((broker.log_dir / "orders-0").glob("*.log"))
        offset = int(second.stem)
        second.unlink()

        broker.start()

        with RawClient(broker.bootstrap) as client:
            assert fetch(client, "orders", 0).error_code == 0
            assert fetch(client, "orders", offset).error_code == ErrorCode.KAFKA_STORAGE_ERROR
            assert fetch(client, "orders", offset + 2).error_code == ErrorCode.KAFKA_STORAGE_ERROR
            assert fetch(client, "orders", offset + 3).error_code == 0
            assert produce(client, "orders").base_offset == 9
        broker.wait_for_log("no other replica is in sync: this broker leads on")
        assert f"{second}: the offsets {offset} to {offset + 2} are damaged" in broker.log.read_text()
