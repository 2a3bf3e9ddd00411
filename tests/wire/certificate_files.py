"""The certificates of a cluster: PEM files that its brokers and clients read."""

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from support.certificates import Authority

HOSTS: Final = ("127.0.0.1", "localhost")


@dataclass(frozen=True)
class Files:
    """The certificates of a cluster: PEM files that its brokers and clients read."""

    root: Path
    authority: Authority

    def write(
        self,
        name: str,
        *,
        authority: Authority | None = None,
        hosts: tuple[str, ...] = HOSTS,
        ended: timedelta | None = None,
    ) -> Path:
        """Certificate and key of `name` in one file, replaced at once; it has expired if it `ended`."""
        made = (authority or self.authority).certify(name, hosts, ended=ended)
        new = self.root / f"{name}.new"
        new.write_text(made.key + made.certificate)
        return new.rename(self.root / f"{name}.pem")

    def trust(self, *authorities: Authority) -> Path:
        """The truststore, replaced at once."""
        new = self.root / "trusted.new"
        new.write_text("".join(each.certificate for each in authorities))
        return new.rename(self.root / "trusted.pem")

    @property
    def trusted(self) -> Path:
        path = self.root / "trusted.pem"
        path.write_text(self.authority.certificate)
        return path

    def client(self, name: str | None = None) -> dict[str, Any]:
        own = (
            {}
            if name is None
            else dict.fromkeys(("ssl.certificate.location", "ssl.key.location"), str(self.write(name)))
        )
        return {"security.protocol": "SSL", "ssl.ca.location": str(self.trusted), **own}
