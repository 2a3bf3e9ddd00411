"""`headrace.Consumer`: partitions, offsets and deserialisation, on librdkafka.

`consumer.py` is the class that users see. `source.py` polls librdkafka, `subscription.py` follows
rebalances, `offsets.py` commits, `decoding.py` deserialises, `buffer.py` bounds what is read ahead.

Begin with `consumer.py`.
"""
