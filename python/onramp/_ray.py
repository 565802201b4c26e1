# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Parts of a sweep by the nodes of a Ray cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from onramp import _onramp

#: Text, name and files of a sweep, from which each node makes it.
Definition = tuple[str, str, dict[str, bytes]]

#: Parts that a processor has waiting for it.
_AHEAD = 2


def parts(
    definition: Definition, missing: Sequence[int], address: str | None
) -> Iterator[tuple[int, bytes]]:
    """Makes the missing parts. A part whose node goes is made by another one."""
    try:
        import ray
    except ModuleNotFoundError:
        raise ModuleNotFoundError("engine='ray' needs the package ray: pip install 'onramp[ray]'", name="ray") from None
    begun = not ray.is_initialized()
    if begun:
        ray.init(address=address, log_to_driver=False)
    try:
        yield from _made(ray, definition, missing)
    finally:
        if begun:
            ray.shutdown()


def _made(ray: Any, definition: Definition, missing: Sequence[int]) -> Iterator[tuple[int, bytes]]:
    make = ray.remote(num_cpus=1, max_retries=-1)(_make)
    shared = ray.put(definition)
    waiting: dict[Any, int] = {}
    left = iter(missing)
    try:
        while True:
            at_once = _AHEAD * max(1, int(ray.cluster_resources().get("CPU", 1)))
            for part in left:
                waiting[make.remote(_onramp.VERSION, shared, part)] = part
                if len(waiting) >= at_once:
                    break
            if not waiting:
                return
            done, _ = ray.wait(list(waiting), num_returns=1, timeout=1.0)
            for one in done:
                part = waiting.pop(one)
                yield part, _content(ray, one)
    finally:
        for one in waiting:
            ray.cancel(one, force=True)


def _content(ray: Any, one: Any) -> bytes:
    try:
        return bytes(ray.get(one))
    except ray.exceptions.RayTaskError as error:
        cause = error.cause
        if isinstance(cause, ModuleNotFoundError):
            text = f"a node of the Ray cluster lacks a package ({cause}): install the wheel of onramp {_onramp.VERSION} on each node"
            raise _onramp.ResultsError(text) from error
        if isinstance(cause, _onramp.ResultsError):
            raise cause from error
        raise


def _make(version: str, definition: Definition, part: int) -> bytes:
    """On a node."""
    if version != _onramp.VERSION:
        text = f"a node of the Ray cluster has onramp {_onramp.VERSION}, this program has {version}: install the same wheel on each"
        raise _onramp.ResultsError(text)
    text, name, files = definition
    content = _onramp.Sweep(text, name, files, None).make(part, 1, None)
    assert content is not None  # nobody stops it
    return content
