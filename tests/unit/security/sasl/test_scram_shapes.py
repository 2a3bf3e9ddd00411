"""Challenges of users that do not exist, which resemble those of users that do."""

from collections import Counter
from hashlib import sha256

from headrace.security.sasl.exchange import SCRAM_SHA_256
from headrace.security.sasl.scram import MIN_ITERATIONS, ScramCredential, ScramShape, ScramShapes

JAVAS = b"1f5q2l6zky0q9p0o4xkq3y7m8n"


def credential(iterations: int, salt: bytes) -> ScramCredential:
    return ScramCredential.of_salted(SCRAM_SHA_256, b"salted", salt, iterations)


def keys(count: int) -> list[bytes]:
    return [sha256(b"%d" % number).digest() for number in range(count)]


def test_without_credentials_the_shape_is_that_of_our_own_tools() -> None:
    assert ScramShapes().choose(b"key") == (MIN_ITERATIONS, 16, False)


def test_salts_look_like_the_stored_ones() -> None:
    shape = ScramShape.of(credential(8192, JAVAS))
    assert shape == (8192, len(JAVAS), True)
    salts = {shape.salt(key) for key in keys(100)}

    assert len(salts) == 100
    assert {ScramShape.of(credential(8192, salt)) for salt in salts} == {shape}
    assert shape.salt(b"key") == shape.salt(b"key")
    assert len(ScramShape.of(credential(4096, bytes(64))).salt(b"key")) == 64


def test_each_shape_is_chosen_as_often_as_credentials_have_it() -> None:
    shapes = ScramShapes()
    common, rare = credential(8192, bytes(16)), credential(4096, JAVAS)
    shapes.replace([], [common] * 9)
    shapes.replace([], [rare])
    chosen = Counter(shapes.choose(key) for key in keys(2000))

    assert chosen.keys() == {ScramShape.of(common), ScramShape.of(rare)}
    assert 100 < chosen[ScramShape.of(rare)] < 300


def test_few_names_change_their_shape_with_a_new_user() -> None:
    shapes = ScramShapes()
    shapes.replace([], [credential(8192, bytes(16))] * 50 + [credential(4096, bytes(16))] * 50)
    before = [shapes.choose(key) for key in keys(1000)]
    shapes.replace([], [credential(8192, bytes(16))])
    changed = sum(shapes.choose(key) != old for key, old in zip(keys(1000), before, strict=True))

    assert changed < 30


def test_a_credential_that_is_replaced_counts_no_longer() -> None:
    shapes = ScramShapes()
    shapes.replace([], [credential(4096, bytes(16))])
    shapes.replace([credential(4096, bytes(16))], [credential(10000, bytes(16))])
    assert {shapes.choose(key).iterations for key in keys(100)} == {10000}

    shapes.replace([credential(10000, bytes(16))], [])
    assert shapes.choose(b"key").iterations == MIN_ITERATIONS
