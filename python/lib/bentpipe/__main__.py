"""The command ``bentpipe``."""

from __future__ import annotations

import signal
import sys

from . import _native

AGAIN = [sys.executable, "-m", "bentpipe"]
"""What starts the command in another process: it is a helper of its own, as in network namespaces."""


def main() -> int:
    """Executes the command line of this process; returns the exit status."""
    # The command handles signals by itself, or is ended by them; ignored ones stay ignored, as with nohup.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    # Python ignores it, and what it ignores would be ignored by the programs that the command starts.
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    return _native.command(["bentpipe", *sys.argv[1:]], AGAIN)


if __name__ == "__main__":
    sys.exit(main())
