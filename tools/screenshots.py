"""`make screenshots`: console.png, messages.png and demo.png in docs/assets, of what really runs."""

import html
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from playwright.sync_api import Browser, sync_playwright

from headrace import JSON, Admin, Consumer, Producer
from support.process import ClusterProcess

ASSETS: Final = Path(__file__).parents[1] / "docs" / "assets"
SIZE: Final = {"width": 1440, "height": 860}
DRINKS: Final = ("tea", "coffee", "juice", "water")
TOPICS: Final = {"orders": 6, "payments": 6, "shipments": 3}
_CHROMIUMS: Final = ("chromium", "chromium-browser", "google-chrome")
_TERMINAL: Final = """<meta charset="utf-8"><body style="margin:0"><pre style="margin:0;padding:24px 28px;
width:1000px;background:#1f2430;color:#e6e6e6;font:15px/23px 'DejaVu Sans Mono',monospace">{lines}</pre>"""


def main(what: str = "all") -> None:
    """Write the screenshots: of the `console`, which takes a minute, of the `demo`, or `all`."""
    with sync_playwright() as playwright:
        chromium = next(filter(None, map(shutil.which, _CHROMIUMS)), None)
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        if what in {"all", "console"}:
            shoot_console(browser)
        if what in {"all", "demo"}:
            shoot_demo(browser)
        browser.close()


@contextmanager
def _load(bootstrap: str) -> Iterator[None]:
    """Write to the topics, and read one as a group that lags a little, while the block runs."""
    stop_writing, stop_reading = threading.Event(), threading.Event()

    def write() -> None:
        with Producer(bootstrap, value=JSON) as producer:
            number = 0
            while not stop_writing.wait(0.02):
                for topic in TOPICS:
                    order = {"order": number, "item": DRINKS[number % 4], "price": 2 + number % 5 / 2}
                    producer.send(topic, order, key=f"customer-{number % 50}")
                    number += 1

    def read() -> None:
        with Consumer(bootstrap, "orders", group="billing", value=JSON) as consumer:
            for _ in consumer.read():
                if stop_reading.is_set():
                    return

    writer, reader = (threading.Thread(target=each, daemon=True) for each in (write, read))  # noqa: TID251  end with us
    writer.start()
    reader.start()
    try:
        yield
    finally:
        stop_reading.set()
        reader.join()  # before the writer: it notices the event with the next record
        stop_writing.set()
        writer.join()


def shoot_console(browser: Browser) -> None:
    """Write the pages of the cluster and of a topic's messages, after a minute, so that charts have lines."""
    with tempfile.TemporaryDirectory(prefix="headrace-") as name, ClusterProcess(Path(name)) as cluster:
        for topic, partitions in TOPICS.items():
            Admin(cluster.bootstrap).create_topic(topic, partitions=partitions, replicas=3)
        with _load(cluster.bootstrap):
            _shoot_pages(browser, cluster.http)


def _shoot_pages(browser: Browser, url: str) -> None:
    page = browser.new_page(viewport=SIZE, color_scheme="light")  # type: ignore[arg-type]
    page.goto(f"{url}/ui")
    time.sleep(60)
    page.reload(wait_until="networkidle")
    page.screenshot(path=ASSETS / "console.png")
    page.goto(f"{url}/ui/topics/orders", wait_until="networkidle")
    page.screenshot(path=ASSETS / "messages.png")


def shoot_demo(browser: Browser) -> None:
    """Write what the demo prints, as on a terminal."""
    done = subprocess.run(
        [sys.executable, "-m", "headrace", "demo"], capture_output=True, text=True, check=True
    )
    page = browser.new_page(viewport={"width": 1056, "height": 200})
    page.set_content(_TERMINAL.format(lines="\n".join(_lines(done.stdout))))
    page.screenshot(path=ASSETS / "demo.png", full_page=True)


def _lines(output: str) -> Iterator[str]:
    """Yield the demo's lines in the colours of a terminal, without figures that a terminal replaces."""
    yield "$ headrace demo"
    for line in map(html.escape, output.rstrip().splitlines()):
        if re.match(r" {13}\S", line):
            continue
        step = re.fullmatch(r"(  \S+ *?)( \S.*?)(  [\d.]+ s)?", line)
        if step is None:
            yield f"<b>{line}</b>" if line.startswith("Headrace") else line
        else:
            verb, what, took = step.groups(default="")
            yield f'<b style="color:#7bd88f">{verb}</b>{what}<span style="color:#5ad4e6">{took}</span>'


if __name__ == "__main__":
    main(*sys.argv[1:])
