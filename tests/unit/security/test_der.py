import pytest

from headrace.security.certificate_fields import Malformed, decode_object_identifier, read, read_sequence


def test_an_element_knows_its_content_and_its_bytes() -> None:
    found = read(memoryview(b"\x04\x02abrest"))

    assert (found.tag, bytes(found.content), bytes(found.encoded)) == (4, b"ab", b"\x04\x02ab")


def test_a_long_length_has_its_own_bytes() -> None:
    found = read(memoryview(b"\x04\x82\x01\x00" + b"x" * 256))

    assert len(found.content) == 256


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x04",
        b"\x04\x02a",
        b"\x04\x81",
        b"\x04\x84\xff\xff\xff\xff",
        b"\x04\x85\0\0\0\0\1a",
        b"\x04\x80a\0\0",
        b"\x1f\x81\x01\x00",
    ],
)
def test_what_is_cut_off_or_no_der_is_malformed(data: bytes) -> None:
    with pytest.raises(Malformed):
        read(memoryview(data))


def test_elements_in_a_sequence() -> None:
    assert [each.tag for each in read_sequence(memoryview(b"\x30\x05\x02\x01\x03\x05\x00"))] == [2, 5]
    with pytest.raises(Malformed, match="expected a SEQUENCE, found tag 0x4"):
        read_sequence(memoryview(b"\x04\x00"))
    with pytest.raises(Malformed):
        read_sequence(memoryview(b"\x30\x03\x02\x02\x03"))


@pytest.mark.parametrize(
    ("content", "name"),
    [("550403", "2.5.4.3"), ("2b060104012a02110101", "1.3.6.1.4.1.42.2.17.1.1"), ("883703", "2.999.3")],
)
def test_object_identifiers(content: str, name: str) -> None:
    assert decode_object_identifier(memoryview(bytes.fromhex(content))) == name


@pytest.mark.parametrize("content", [b"", b"\x55\x84"])
def test_an_object_identifier_that_is_cut_off(content: bytes) -> None:
    with pytest.raises(Malformed):
        decode_object_identifier(memoryview(content))
