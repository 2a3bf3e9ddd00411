"""What was read a moment ago is good enough for those who only sort it anew."""

from fastapi import Request

from headrace.gateway.console.state import KEPT_S, SWAP, Recent


def asked(*headers: str) -> Request:
    return Request({"type": "http", "headers": [(each.encode(), b"1") for each in headers]})


def test_a_page_is_read_anew_and_a_swap_is_not_for_a_while() -> None:
    now_s = [100.0]
    reads = iter(range(10))
    lately: Recent[int] = Recent(now_s=lambda: now_s[0])
    assert lately.get(asked(SWAP), lambda: next(reads)) == 0
    assert lately.get(asked(SWAP), lambda: next(reads)) == 0
    assert lately.get(asked(), lambda: next(reads)) == 1
    now_s[0] += KEPT_S - 0.1
    assert lately.get(asked(SWAP), lambda: next(reads)) == 1
    now_s[0] += 0.2
    assert lately.get(asked(SWAP), lambda: next(reads)) == 2


def test_what_may_be_old_is_read_when_it_is_too_old() -> None:
    now_s = [0.0]
    reads = iter(range(10))
    lately: Recent[int] = Recent(now_s=lambda: now_s[0])
    assert lately.aged(15, lambda: next(reads)) == 0
    now_s[0] = 14.9
    assert lately.aged(15, lambda: next(reads)) == 0
    now_s[0] = 15.1
    assert lately.aged(15, lambda: next(reads)) == 1


def test_what_took_long_to_read_is_kept_for_longer() -> None:
    now_s = [0.0]
    reads = iter(range(10))
    lately: Recent[int] = Recent(now_s=lambda: now_s[0], rest=10)

    def slowly() -> int:
        now_s[0] += 2
        return next(reads)

    assert lately.get(asked(), slowly) == 0
    now_s[0] = 21.9
    assert lately.get(asked(), slowly) == 0
    now_s[0] = 22.1
    assert lately.get(asked(), slowly) == 1


def test_a_value_with_another_key_is_read_anew() -> None:
    reads = iter(range(10))
    lately: Recent[int] = Recent(now_s=lambda: 0.0)
    assert lately.get(asked(SWAP), lambda: next(reads), key="open") == 0
    assert lately.get(asked(SWAP), lambda: next(reads), key="any") == 1
    assert lately.get(asked(SWAP), lambda: next(reads), key="any") == 1
    assert lately.get(asked(SWAP), lambda: next(reads), key="open") == 2


def test_a_value_that_is_not_complete_is_read_again() -> None:
    reads = iter([[], ["billing-1"], ["billing-2"]])
    lately: Recent[list[str]] = Recent(now_s=lambda: 0.0, complete=bool)
    assert lately.get(asked(SWAP), lambda: next(reads)) == []
    assert lately.get(asked(SWAP), lambda: next(reads)) == ["billing-1"]
    assert lately.get(asked(SWAP), lambda: next(reads)) == ["billing-1"]
