"""Which attacks there are: all that can be made of the routes, or some of them by a seed."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from random import Random

from http_amplification.attacks import Attack, Attacks, stories
from http_amplification.measuring import Served, known_names
from http_amplification.routes import operations


def attacks(
    served: Served, size: int, seed: int, only: Callable[[str], bool] = lambda _: True
) -> Iterator[Attack]:
    """Every attack on every route, with bodies of about so many bytes, and every story about schemas.

    `only` says which operations and stories, by their labels.
    """
    rng = Random(seed)
    names = known_names(served.url)
    found, schemas = operations()
    on_known, on_unknown = (Attacks(schemas, each, size, rng) for each in (names, {}))
    chosen = [operation for operation in found if only(operation.label)]
    for operation in chosen:  # what is imported when it is first asked for is not a cost of an attack
        served.warm(next(on_unknown.on(operation)))
    for operation in chosen:
        yield from (on_unknown if operation.method == "DELETE" else on_known).on(operation)
    for story in stories(names["topic"], size):
        if only(story.label):
            targets = [each.target.replace("{cluster_id}", names["cluster_id"]) for each in story.requests]
            requests = zip(story.requests, targets, strict=True)
            yield replace(story, requests=tuple(replace(each, target=target) for each, target in requests))


def sample(served: Served, size: int, seed: int, *, groups: int, each: int) -> list[Attack]:
    """Some attacks on some operations, and some stories: so many of each."""
    rng = Random(seed)
    labels = [operation.label for operation in operations()[0]]
    labels = rng.sample(labels, groups)
    told = rng.sample([story.label for story in stories("t", 1000)], groups // 6)
    by_group: dict[str, list[Attack]] = {}
    for attack in attacks(served, size, seed, {*labels, *told}.__contains__):
        group = by_group.setdefault(attack.label.partition(": ")[0], [])
        group.append(attack)
        if len(group) > each:  # each of those that came so far is as likely to be left as any other
            group.pop(rng.randrange(len(group)))
    return [attack for group in by_group.values() for attack in group]
