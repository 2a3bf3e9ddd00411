"""Topics as Arrow columns, without Spark: fetches of ranges, compiled decoding of records, schemas."""
