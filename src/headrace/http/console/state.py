"""What the console remembers between requests: little, bounded, and none of it matters after a restart."""

from collections.abc import Sequence

from headrace.client.cluster.topic_overview import TopicOverview
from headrace.client.groups.group import Group
from headrace.http.console.lately import Lately
from headrace.http.console.progress import Pipelines
from headrace.http.console.sampling import LagSampler
from headrace.http.console.topic_list import Listed
from headrace.http.console.views.groups import Line
from headrace.http.reach import Reach


class Console:
    """`app.state.console`."""

    def __init__(self, reach: Reach) -> None:
        self.topics: Lately[Listed] = Lately()
        self.whole_topics: Lately[list[TopicOverview]] = Lately()
        self.disk: Lately[dict[int, int]] = Lately()
        self.groups: Lately[list[Line]] = Lately()
        self.lags = LagSampler(self._groups)
        self.pipelines = Pipelines(reach.bootstrap)
        self._reach = reach
        reach.at_close(self.lags.close)

    def _groups(self, names: Sequence[str]) -> list[Group]:
        return self._reach.groups.describe(names)
