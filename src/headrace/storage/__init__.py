"""One partition on disk, in Apache Kafka's own file formats. Blocking code, no asyncio."""
