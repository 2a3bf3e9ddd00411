"""The rows of the list of quotas."""

from headrace.client.admin.quotas import ClientQuota
from headrace.gateway.console.views.quotas import rows_of

ALICE = ClientQuota({"user": "alice"}, {"producer_byte_rate": 1e6, "request_percentage": 12.5})
HER_REPORT = ClientQuota({"user": "alice", "client-id": "report"}, {"consumer_byte_rate": 512.0})
ANY_CLIENT = ClientQuota({"client-id": None}, {"request_percentage": 50.0})
ADDRESS = ClientQuota({"ip": "10.0.0.7"}, {"connection_creation_rate": 20.0})
EVERY = [ALICE, HER_REPORT, ANY_CLIENT, ADDRESS]


def test_each_quota_has_a_row() -> None:
    rows = rows_of(EVERY, "")
    assert [(each.entity_text, each.key, each.figure) for each in rows] == [
        ("user alice", "producer_byte_rate", "1,000,000"),
        ("user alice", "request_percentage", "12.5"),
        ("user alice, client-id report", "consumer_byte_rate", "512"),
        ("client-id <default>", "request_percentage", "50"),
        ("ip 10.0.0.7", "connection_creation_rate", "20"),
    ]
    assert rows[0].number == "1000000"
    assert rows[0].unit == "bytes per second, 977 KiB"
    assert rows[2].unit == "bytes per second"
    assert rows[3].entity_json == '{"client-id": null}'


def test_entities_are_selected_by_type_and_by_being_a_default() -> None:
    def entities(of: str) -> list[object]:
        return list({id(each.entity): each.entity for each in rows_of(EVERY, of)}.values())

    assert entities("user") == [ALICE.entity, HER_REPORT.entity]
    assert entities("client-id") == [HER_REPORT.entity, ANY_CLIENT.entity]
    assert entities("ip") == [ADDRESS.entity]
    assert entities("default") == [ANY_CLIENT.entity]
    assert len(entities("something else")) == 4
