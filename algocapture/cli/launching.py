"""The options that say where units run, shared by `run` and `resume`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import click

from algocapture.config import ConfigError
from algocapture.launch import Inline, Launcher, Processes

LAUNCHERS = ("inline", "processes", "ray")
_OPTIONS = (
    click.option("--launcher", type=click.Choice(LAUNCHERS),
                 help="[processes on CPU, else inline; ray with --address]"),
    click.option("--address", metavar="HOST:PORT", help="Of a Ray cluster, or auto [a local one]."),
    click.option("--cpus", type=float, help="Of a unit on Ray [its threads]."),
    click.option("--gpus", type=float, help="Of a unit on Ray, such as 0.25 [1 on cuda, else 0]."),
    click.option("--memory", type=float, metavar="BYTES", help="Of a unit on Ray, such as 4e9."),
    click.option("--publish", metavar="URL",
                 help="Keep the run's state there too, and continue from there."),
)  # fmt: skip


@dataclass(frozen=True)
class Asked:
    """What the command line says of the launcher."""

    launcher: str | None = None
    address: str | None = None
    cpus: float | None = None
    gpus: float | None = None
    memory: float | None = None
    publish: str | None = None

    def choose(self, units: int, devices: set[str], several: str = "processes") -> Launcher:
        """On the CPU several units run side by side; a GPU is not shared."""
        name = self.launcher or ("ray" if self.address is not None else None)
        if name != "ray":
            self._refuse_rays()
        if name is None:
            name = several if devices == {"cpu"} and units > 1 else "inline"
        if name == "ray":
            return self._ray(devices)
        return Processes() if name == "processes" else Inline()

    def _refuse_rays(self) -> None:
        for option in ("address", "cpus", "gpus", "memory"):
            if getattr(self, option) is not None:
                raise ConfigError(f"--{option} = {getattr(self, option)}: only with --launcher ray")

    def _ray(self, devices: set[str]) -> Launcher:
        try:
            from algocapture.launch.ray import Ray
        except ImportError as error:
            raise ConfigError(
                f"--launcher ray: {error}; install it with: pip install 'algocapture[ray]'"
            ) from error
        gpus = float(devices != {"cpu"}) if self.gpus is None else self.gpus
        return Ray(self.address, self.cpus, gpus, self.memory or 0.0)


def launching(verb: Callable[..., Any]) -> Callable[..., Any]:
    """Give a verb the options, as one argument `asked`."""

    @functools.wraps(verb)
    def called(**options: Any) -> Any:
        asked = Asked(**{name: options.pop(name) for name in Asked.__dataclass_fields__})
        return verb(asked=asked, **options)

    for option in reversed(_OPTIONS):
        called = option(called)
    return called
