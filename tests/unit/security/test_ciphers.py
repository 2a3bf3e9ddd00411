import logging
import ssl

import pytest

from headrace.security.ciphers import ANY_SUITE, TLS13_SUITES, CipherSuites
from headrace.security.pem import InvalidTlsSetting

V12, V13 = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3


def chosen(suites: CipherSuites) -> list[str]:
    """The suites of TLS 1.2 that OpenSSL uses."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    suites.choose_in(context)
    return [each["name"] for each in context.get_ciphers() if each["name"] not in TLS13_SUITES]


@pytest.mark.parametrize(
    ("java", "openssl"),
    [
        ("TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "ECDHE-RSA-AES256-GCM-SHA384"),
        ("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "ECDHE-ECDSA-AES128-GCM-SHA256"),
        ("TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-RSA-CHACHA20-POLY1305"),
        ("TLS_DHE_RSA_WITH_AES_128_GCM_SHA256", "DHE-RSA-AES128-GCM-SHA256"),
        ("TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA384", "ECDHE-RSA-AES256-SHA384"),
        ("TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA", "ECDHE-ECDSA-AES128-SHA"),
        ("TLS_RSA_WITH_AES_256_GCM_SHA384", "AES256-GCM-SHA384"),
        ("TLS_RSA_WITH_AES_128_CBC_SHA256", "AES128-SHA256"),
    ],
)
def test_a_java_name_chooses_one_suite_of_openssl(java: str, openssl: str) -> None:
    assert chosen(CipherSuites.parse(java)) == [openssl]


def test_names_of_java_and_openssl_may_be_mixed_and_keep_their_order() -> None:
    suites = CipherSuites.parse(
        "TLS_AES_256_GCM_SHA384, ECDHE-ECDSA-AES128-GCM-SHA256,TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"
    )

    assert suites.tls13 == ("TLS_AES_256_GCM_SHA384",)
    assert chosen(suites) == ["ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-RSA-AES256-GCM-SHA384"]


@pytest.mark.parametrize("nothing", [None, "", " , "])
def test_no_list_leaves_the_choice_to_openssl(nothing: str | None) -> None:
    assert CipherSuites.parse(nothing) == ANY_SUITE
    assert ANY_SUITE.versions((V12, V13)) == (V12, V13)


@pytest.mark.parametrize(
    ("text", "versions"),
    [
        ("TLS_AES_128_GCM_SHA256", (V13,)),
        ("TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", (V12,)),
        ("TLS_AES_128_GCM_SHA256,TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", (V12, V13)),
        ("ECDHE-RSA-AES256-GCM-SHA384", (V12, V13)),
        ("ECDHE+AESGCM:!aNULL", (V12, V13)),
    ],
)
def test_a_list_of_java_names_excludes_versions_without_a_suite(
    text: str, versions: tuple[ssl.TLSVersion, ...]
) -> None:
    assert CipherSuites.parse(text).versions((V12, V13)) == versions


def test_a_list_without_a_suite_for_any_enabled_version_is_refused() -> None:
    suites = CipherSuites.parse("TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384")

    with pytest.raises(InvalidTlsSetting, match=r"ssl\.cipher\.suites has no suite for the TLS versions"):
        suites.versions((V13,))


@pytest.mark.parametrize(
    "name", ["TLS_NO_SUCH_SUITE", "TLS_ECDHE_RSA_WITH_ROT13_CBC_SHA", "SSL_RSA_WITH_RC4_128_MD5", "nonsense"]
)
def test_an_unknown_suite_is_named_even_among_known_ones(name: str) -> None:
    with pytest.raises(InvalidTlsSetting, match=f"unsupported suite '{name}'"):
        CipherSuites.parse(f"TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,{name}")


def test_a_choice_among_the_suites_of_tls_1_3_is_obeyed_or_warned_about(
    caplog: pytest.LogCaptureFixture,
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with caplog.at_level(logging.WARNING):
        CipherSuites.parse("TLS_AES_256_GCM_SHA384").choose_in(context)

    obeyed = {each["name"] for each in context.get_ciphers()} & set(TLS13_SUITES) == {
        "TLS_AES_256_GCM_SHA384"
    }
    assert obeyed != ("cannot choose among TLS 1.3's suites" in caplog.text)


def test_all_suites_of_tls_1_3_need_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    CipherSuites.parse(",".join(TLS13_SUITES)).choose_in(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))

    assert not caplog.text
