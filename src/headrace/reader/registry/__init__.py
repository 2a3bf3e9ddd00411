"""Records in the wire format of a schema registry as typed Arrow columns: Avro, JSON Schema and Protobuf."""
