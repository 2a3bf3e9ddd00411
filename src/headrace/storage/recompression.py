"""Batches of topics that have a compression of their own, whatever their producers chose."""

from headrace.protocol.batch import HEADER_SIZE, BatchHeader, build_batch
from headrace.protocol.compression import Compression, compress, decompress
from headrace.protocol.records import MAX_UNPACKED_BYTES
from headrace.storage.errors import MessageTooLarge


def recompressed(
    data: memoryview, header: BatchHeader, compression: Compression, *, max_bytes: int
) -> memoryview:
    """The same batch with its records compressed so; MessageTooLarge if that makes it larger than allowed.

    InvalidRecord if they cannot be unpacked, or unpack to more than a broker takes.
    """
    packed = data[HEADER_SIZE : header.size]
    body = decompress(header.compression, packed, max_bytes=MAX_UNPACKED_BYTES)
    batch = build_batch(
        compress(compression, body),
        base_offset=header.base_offset,
        last_offset_delta=header.last_offset_delta,
        records_count=header.records_count,
        base_timestamp=header.base_timestamp,
        max_timestamp=header.max_timestamp,
        leader_epoch=header.leader_epoch,
        compression=compression,
        timestamp_type=header.timestamp_type,
        transactional=header.is_transactional,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
    )
    if len(batch) > max_bytes:
        raise MessageTooLarge(len(batch), limit=max_bytes)
    return memoryview(batch)
