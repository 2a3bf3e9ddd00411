"""Rules that name principals; tests/compat compares more of them with Kafka's own class."""

import pytest

from headrace.security.pem import InvalidTlsSetting
from headrace.security.principal_mapping import NoMatchingRule, PrincipalMapper
from headrace.security.principals import ANONYMOUS, Principal
from support.certificates import Authority

ANN = "CN=Ann,OU=ServiceUsers,O=Org,C=DE"


@pytest.mark.parametrize(
    ("rules", "name", "mapped"),
    [
        ("DEFAULT", ANN, ANN),
        ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/", ANN, "Ann"),
        ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/L", ANN, "ann"),
        ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/U", ANN, "ANN"),
        ("RULE:CN=Bob.*/bob/, RULE:CN=(.*?),OU=(.*?),.*/$1@$2/L ,DEFAULT", ANN, "ann@serviceusers"),
        ("RULE:CN=Bob.*/bob/,DEFAULT", ANN, ANN),
        (",RULE:O=(.*)/$1/,,DEFAULT", "O=Org", "Org"),
        (r"RULE:CN=(.*)\/(.*)/$2\/$1/", "CN=a/b", "b/a"),
        ("RULE:CN=(?<who>[^,]*),.*/${who}!/", ANN, "Ann!"),
        ("RULE:CN=(.*?),.*/$12/", ANN, "Ann2"),
        ("RULE:CN=(.*?),.*/$1@$4/", ANN, "Ann@$4"),
        ("RULE:CN=(.*?),.*/$0/", ANN, ANN),
        (r"RULE:CN=(.*?),.*/\$1/", ANN, "$1"),
        ("RULE:CN=([^,]*)(,X=.*)?,.*/$1$2/", ANN, "Ann"),
        ("RULE:.*/x/", ANN, "xx"),
    ],
)
def test_the_first_rule_that_matches_names_the_principal(rules: str, name: str, mapped: str) -> None:
    assert PrincipalMapper(rules).name(name) == mapped


@pytest.mark.parametrize("rules", ["", "RULE:CN=Bob/bob/", "RULE:Ann/x/", "RULE:CN=([0-9]*),.*/$1/"])
def test_a_name_that_no_rule_matches_as_a_whole_is_refused(rules: str) -> None:
    with pytest.raises(NoMatchingRule, match=r"no rule in ssl\.principal\.mapping\.rules matches 'CN=Ann"):
        PrincipalMapper(rules).name(ANN)


@pytest.mark.parametrize(
    "rules",
    [
        "default",
        "RULE:a/b",
        "RULE:a/b/X",
        "RULE:a/b/Lx",
        "DEFAULT,nonsense",
        "RULE:(a/b/",
        "RULE:a/$1/",
        "RULE:(a)/$/",
        "RULE:(a)/$x/",
        "RULE:(?<who>a)/${whom}/",
        "RULE:(?=CN=a).*/a/",
        r"RULE:CN=(.*),OU=\1/a/",
        "RULE:(((a{1000}){1000}){1000})/a/",
    ],
)
def test_an_invalid_rule_is_found_at_the_start(rules: str) -> None:
    with pytest.raises(InvalidTlsSetting, match=r"^ssl\.principal\.mapping\.rules has the invalid rule"):
        PrincipalMapper(rules)


def test_the_principal_of_a_certificate() -> None:
    mapper = PrincipalMapper("RULE:CN=(.*)/$1/U")

    assert mapper.principal(Authority("ca").certify("ann").der) == Principal("ANN")
    assert mapper.principal(None) == ANONYMOUS


@pytest.mark.parametrize(
    "pattern", ["CN=(([a-z])+.)+[A-Z]([a-z])+", "CN=(a+)+", "CN=(a|aa)+", "CN=(.*a){20}"]
)
def test_a_name_cannot_make_a_rule_take_long(pattern: str) -> None:
    """An engine with backtracking would not return within hours."""
    with pytest.raises(NoMatchingRule):
        PrincipalMapper(f"RULE:{pattern}/x/").name("CN=" + "a" * 5000 + "!")
