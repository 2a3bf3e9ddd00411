"""The version of a request to another broker is the highest that both brokers support."""

import pytest

from headrace.broker.peers.peer import FIRST_VERSIONS, PeerVersions
from headrace.protocol.between_brokers.step_down import STEP_DOWN
from headrace.protocol.between_brokers.update_metadata import UPDATE_METADATA
from headrace.protocol.peers import UnsupportedByPeer
from headrace.protocol.schema.api_versions import ApiVersion, ApiVersionsResponse
from headrace.protocol.schema.index import ApiKey


def versions_of(**listed: tuple[int, int]) -> PeerVersions:
    """Return what a broker supports that lists these versions, by the names of the APIs."""
    keys = {"fetch": ApiKey.FETCH, "update_metadata": UPDATE_METADATA, "step_down": STEP_DOWN}
    return PeerVersions.of(
        ApiVersionsResponse(
            error_code=0,
            api_keys=[
                ApiVersion(api_key=keys[name], min_version=first, max_version=last)
                for name, (first, last) in listed.items()
            ],
        )
    )


@pytest.mark.parametrize(
    ("theirs", "ours", "chosen"),
    [((4, 17), range(15, 18), 17), ((4, 16), range(15, 18), 16), ((4, 20), range(15, 18), 17)],
)
def test_the_highest_common_version_is_chosen(theirs: tuple[int, int], ours: range, chosen: int) -> None:
    assert versions_of(fetch=theirs).choose(ApiKey.FETCH, ours) == chosen


@pytest.mark.parametrize(("theirs", "named"), [((4, 14), "v4-v14"), ((18, 18), "v18")])
def test_versions_that_are_too_far_apart_are_named(theirs: tuple[int, int], named: str) -> None:
    with pytest.raises(
        UnsupportedByPeer, match=rf"Fetch is needed in v15-v17, .* {named} \(UNSUPPORTED_VERSION\)"
    ):
        versions_of(fetch=theirs).choose(ApiKey.FETCH, range(15, 18))


def test_a_broker_that_lists_no_api_of_brokers_supports_their_first_versions() -> None:
    versions = versions_of(fetch=(4, 17))
    assert {key: versions.choose(key, each) for key, each in FIRST_VERSIONS.items()} == {
        UPDATE_METADATA: 8,
        ApiKey.ENVELOPE: 0,
        10_000: 0,
        STEP_DOWN: 0,
    }


def test_a_broker_that_lists_apis_of_brokers_supports_no_others() -> None:
    versions = versions_of(update_metadata=(8, 9))
    assert versions.choose(UPDATE_METADATA, range(8, 12)) == 9
    with pytest.raises(UnsupportedByPeer, match="StepDown is needed in v0, and the broker does not support"):
        versions.choose(STEP_DOWN, range(1))
