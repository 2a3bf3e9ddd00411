"""`headrace.Consumer`: partitions, offsets and deserialisation."""
