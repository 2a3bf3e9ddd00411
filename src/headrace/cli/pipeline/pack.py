"""`headrace pipeline pack`: one archive with the Python packages and files that a cluster needs."""

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from headrace.cli.pipeline import driver as pipeline_driver
from headrace.cli.pipeline.commands import file_argument, open_pipeline
from headrace.cli.support.output import bar, count, size
from headrace.cli.support.session import Session, options


@click.command()
@file_argument
@click.option(
    "-o",
    "--output",
    metavar="ARCHIVE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The archive. Default: NAME.tar.gz in the current directory.",
)
@click.option(
    "--add",
    metavar="PATH",
    type=click.Path(path_type=Path),
    multiple=True,
    help="A file or directory beside FILE that the pipeline reads, such as a schema; repeatable.",
)
@click.option("--include", metavar="PACKAGE", multiple=True, help="An installed package to add; repeatable.")
@click.option(
    "--no-packages", is_flag=True, help="Only the pipeline: the machines have headrace[spark] installed."
)
@options
def pack(
    session: Session,
    path: Path,
    output: Path | None,
    add: Sequence[Path],
    include: Sequence[str],
    *,
    no_packages: bool,
) -> None:
    """Build the environment that executors need:  headrace pipeline pack shop.py -o shop.tar.gz

    The archive has headrace, the packages that it and the pipeline import, the pipeline and the modules of
    its directory. The same files give the same bytes. Run the pipeline with it: headrace pipeline run shop.py
    --master ... --environment shop.tar.gz
    """
    from headrace.pipeline.pack.environment import contents, write_archive  # noqa: PLC0415

    output, add = output and output.absolute(), [each.absolute() for each in add]
    here = Path.cwd()
    before = set(sys.modules)
    opened = open_pipeline(session, path, None)
    # The file itself is loaded under a name of its own, and packed because it is FILE.
    own = {name for name, it in sys.modules.items() if getattr(it, "__file__", None) == str(opened.path)}
    modules = {name.partition(".")[0] for name in set(sys.modules) - before - own}
    packed = contents(
        opened.path,
        modules,
        driver=Path(pipeline_driver.__file__),
        add=add,
        include=include,
        packages=not no_packages,
    )
    target = output or here / f"{opened.pipeline.name}.tar.gz"
    with bar(f"packing {target.name}", packed.size) as advance:
        write_archive(target, packed.entries, advance)
    archive_bytes = target.stat().st_size
    files, packages = len(packed.entries), packed.distributions
    session.show(
        {"archive": str(target), "bytes": archive_bytes, "files": files, "packages": packages},
        f"packed {target}: {count(files, 'file')}, {count(len(packages), 'package')}, "
        f"{size(archive_bytes)} ({size(packed.size)} unpacked)",
    )
