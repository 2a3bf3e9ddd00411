"""Which aborted transactions a consumer has to know, among very many."""

import random
from pathlib import Path

from headrace.storage.txn_index import AbortedTxn, TxnIndex


def history(seed: int, count: int) -> list[AbortedTxn]:
    """Transactions of many producers, long and short, in the order of their markers."""
    chance = random.Random(seed)
    ends = sorted(chance.sample(range(count * 4), count))
    spans = []
    for last in ends:
        length = chance.choice((1, 1, 1, 2, 5, 50, 400))
        spans.append((max(0, last - length), last))
    entries = []
    for number, (first, last) in enumerate(spans):
        still_open = [begin for begin, end in spans[number + 1 :] if begin <= last]
        stable = min(still_open, default=last + 1)
        entries.append(AbortedTxn(number, first, last, stable))
    return entries


def test_the_search_finds_what_a_scan_finds(tmp_path: Path) -> None:
    for seed in range(20):
        entries = history(seed, 300)
        index = TxnIndex(tmp_path, f"{seed}.txnindex")
        for entry in entries[:200]:
            index.append(entry)
        index = TxnIndex(index.path.parent, index.path.name)  # the rest is appended to what was loaded
        for entry in entries[200:]:
            index.append(entry)
        chance = random.Random(seed)
        for _ in range(50):
            start = chance.randrange(1200)
            end = start + chance.choice((1, 10, 100, 1000))

            found, may_continue = index.overlapping(start, end)

            assert found == [txn for txn in entries if txn.last_offset >= start and txn.first_offset < end]
            assert may_continue == all(txn.last_stable_offset < end for txn in entries)
