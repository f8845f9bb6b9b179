"""What there is: named links, and congestion control schemes."""

from __future__ import annotations

import json
from typing import Any

from . import _native


def links() -> list[dict[str, Any]]:
    """Returns the named links with their rates in bit/s, delays in seconds and sources.

    They are what ``bentpipe links --json`` prints; a scenario uses one by ``profile = "geo-10m"``.
    """
    listed: list[dict[str, Any]] = json.loads(_native.links_json())
    return listed


def schemes() -> dict[str, dict[str, Any]]:
    """Returns the congestion control schemes by name, each with its parameters and their defaults.

    Times are in seconds. A scenario sets them by ``[host] tcp = { scheme = "cubic", beta = 0.8 }``.
    """
    return dict(_native.schemes())
