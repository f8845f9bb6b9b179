"""A plugin of pytest: the fixture ``bentpipe_link``."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Callable

import pytest

if TYPE_CHECKING:
    from ._emulate import LiveLink


@pytest.fixture
def bentpipe_link() -> Iterator[Callable[..., LiveLink]]:
    """Starts links with the arguments of :func:`bentpipe.emulate`, and ends them after the test::

        def test_upload(bentpipe_link):
            link = bentpipe_link("geo-10m", values={"loss": 1e-3})
            link.run(["curl", "--fail", "http://far/"], check=True)

    Where links cannot be emulated the test is skipped, with the reason.
    """
    from ._emulate import UnavailableError, emulate

    with contextlib.ExitStack() as links:

        def start(*args: object, **options: object) -> LiveLink:
            try:
                return links.enter_context(emulate(*args, **options))  # type: ignore[arg-type]
            except UnavailableError as error:
                pytest.skip(f"links cannot be emulated here: {error}")

        yield start
