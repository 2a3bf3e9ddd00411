"""Everything at once, by the dice: kills, pauses and cuts that overlap, and ZooKeeper among the victims.

The seed decides what happens to whom and for how long; what the processes make of it, their timing does.
"""

import os
import random
import threading
from collections.abc import Callable
from typing import Final

from cluster.cluster import SESSION_S
from cluster.stage import Scene

ROUNDS: Final = 14
SEED: Final = int(os.environ.get("HEADRACE_SEED", "1"))

Undo = Callable[[], None]


def everything_happens_at_once(scene: Scene) -> None:
    """Each round something breaks, or something is mended; in the end everything is."""
    dice = random.Random(SEED)
    scene.figures["seed"] = SEED
    broken: list[Undo] = []
    for _ in range(ROUNDS):
        if broken and dice.random() < 0.5:
            broken.pop(dice.randrange(len(broken)))()
        else:
            broken.append(dice.choice(BREAKS)(scene, dice))
        threading.Event().wait(dice.uniform(0.1, 1.2 * SESSION_S) * dice.random())
    for undo in broken:
        undo()


def _kill(scene: Scene, dice: random.Random) -> Undo:
    victim = dice.choice(list(scene.cluster.brokers.values()))
    victim.kill()

    def start() -> None:
        if not victim.running:
            victim.launch()

    return start


def _pause(scene: Scene, dice: random.Random) -> Undo:
    victim = dice.choice(list(scene.cluster.brokers.values()))
    if victim.running and not victim.paused:
        victim.pause()

    def resume() -> None:
        if victim.paused:
            victim.resume()

    return resume


def _cut(scene: Scene, dice: random.Random) -> Undo:
    network = scene.network
    assert network is not None, "this story needs a network that can be cut"
    one, other = dice.sample(network.places, 2)
    network.cut([one], [other])
    return network.mend


def _stop_zookeeper(scene: Scene, dice: random.Random) -> Undo:
    if dice.random() < 0.5 or not scene.cluster.coordination.running:
        return lambda: None
    scene.cluster.coordination.kill()

    def start() -> None:
        if not scene.cluster.coordination.running:
            scene.cluster.coordination.start()

    return start


BREAKS: Final = (_kill, _kill, _pause, _cut, _cut, _stop_zookeeper)
