"""Descriptions of settings: Apache Kafka has them in HTML."""

import pytest

from headrace.client.admin.documented import plain_text


@pytest.mark.parametrize(
    ("documentation", "text"),
    [
        ('will enable <a href="#compaction">log compaction</a>, which', "will enable log compaction, which"),
        ("one of <ul><li><code>TLS</code></li><li>SSL</li></ul>", "one of TLS SSL"),
        ("first<br/>second<p>third &lt;5 &amp; more", "first second third <5 & more"),
        ("listener.name.<name>.x, if a < b and c > d", "listener.name.<name>.x, if a < b and c > d"),
    ],
)
def test_descriptions_are_text(documentation: str, text: str) -> None:
    assert plain_text(documentation) == text
