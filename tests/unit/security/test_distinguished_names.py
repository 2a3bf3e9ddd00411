"""Names as Java writes them; tests/compat compares many more of them with Java itself."""

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID

from headrace.security.certificate_fields import Malformed, distinguished_name, subject_name
from support.certificates import Authority


def name(*parts: tuple[x509.ObjectIdentifier, str]) -> str:
    return distinguished_name(x509.Name([x509.NameAttribute(*part) for part in parts]).public_bytes())


def test_the_last_part_comes_first() -> None:
    assert (
        name(
            (NameOID.COUNTRY_NAME, "DE"),
            (NameOID.STATE_OR_PROVINCE_NAME, "Bayern"),
            (NameOID.LOCALITY_NAME, "München"),
            (NameOID.STREET_ADDRESS, "Weg 1"),
            (NameOID.ORGANIZATION_NAME, "Headrace"),
            (NameOID.ORGANIZATIONAL_UNIT_NAME, "Sales"),
            (NameOID.DOMAIN_COMPONENT, "example"),
            (NameOID.USER_ID, "ann"),
            (NameOID.COMMON_NAME, "Ann"),
        )
        == "CN=Ann,UID=ann,DC=example,OU=Sales,O=Headrace,STREET=Weg 1,L=München,ST=Bayern,C=DE"
    )


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("a,b", r"a\,b"),
        ('+=<>#;"\\', r"\+\=\<\>\#\;\"" + r"\\"),
        (" two  spaces ", r"\ two  spaces\ "),
        ("   ", r"\ \ \ "),
        ("a\0b", r"a\00b"),
        ("\rline\n", "\\\rline\n"),
    ],
)
def test_special_characters_are_escaped(value: str, written: str) -> None:
    assert name((NameOID.COMMON_NAME, value)) == f"CN={written}"


def test_an_attribute_without_a_name_in_rfc_2253_is_written_in_hexadecimal() -> None:
    assert name((NameOID.EMAIL_ADDRESS, "a@b"), (NameOID.COMMON_NAME, "Ann")) == (
        "CN=Ann,1.2.840.113549.1.9.1=#1603614062"
    )


def test_attributes_of_one_part_are_joined() -> None:
    both = [x509.NameAttribute(NameOID.COMMON_NAME, "Ann"), x509.NameAttribute(NameOID.USER_ID, "a")]
    found = distinguished_name(x509.Name([x509.RelativeDistinguishedName(both)]).public_bytes())

    assert sorted(found.split("+")) == ["CN=Ann", "UID=a"]


def test_an_empty_name_is_empty() -> None:
    assert name() == ""


def test_the_subject_of_a_certificate_is_not_its_issuer() -> None:
    assert subject_name(Authority("issuer").certify("client").der) == "CN=client"


@pytest.mark.parametrize("data", [b"", b"\x30\x00", b"\x30\x02\x30\x00", b"nonsense"])
def test_bytes_that_are_no_certificate(data: bytes) -> None:
    with pytest.raises(Malformed):
        subject_name(data)


@pytest.mark.parametrize(
    "data",
    [
        "0400",  # no sequence
        "30023000",  # a part that is no set
        "300431023000",  # an attribute without type and value
        "300631043002" + "0600",  # an attribute with a type only
        "3005310330" + "0206",  # cut off
    ],
)
def test_bytes_that_are_no_name(data: str) -> None:
    with pytest.raises(Malformed):
        distinguished_name(bytes.fromhex(data))
