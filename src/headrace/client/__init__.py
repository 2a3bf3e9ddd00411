"""The clients of a cluster: the SDK (Producer, Consumer, Admin), and the tools of CLI and gateway.

`wire` is the protocol client: connections, retries, security. `producer` and `consumer` use librdkafka
below our API; `admin`, `groups`, `transactions`, `cluster` and `records` are for operators and tools;
`serializers` and `schemas` know the schema registry. A contract in pyproject.toml names their order.

It reaches brokers over the wire only. `cli`, `gateway`, `tables`, `spark` and `pipeline` import it; users
import the same classes from `headrace`. Begin with `producer/producer.py`, or `wire/brokers.py`.
"""
