"""Starts programs at an end of an emulated link; ``bentpipe emulate`` runs this file there.

It uses nothing but the standard library. Each connection to its socket is one program: the first message has
its words, folder and environment, and its three standard files; the answer is its process number, or why it
could not be started; the next answer its exit status. Messages of the other side are signals for it. The
first connection only says how long the session lasts. At its end all these programs, and what they have
started in their groups, are ended.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading


def main(path: str) -> None:
    server = socket.socket(socket.AF_UNIX)
    server.bind(path)
    server.listen(16)
    life, _ = server.accept()
    threading.Thread(target=_serve, args=(server,), daemon=True).start()
    life.recv(1)
    for group in list(_groups):
        try:
            os.killpg(group, signal.SIGKILL)
        except OSError:
            pass  # all of it has ended
    os._exit(0)


_groups: list[int] = []
"""Process groups of the programs that were started."""


def _serve(server: socket.socket) -> None:
    while True:
        connection, _ = server.accept()
        threading.Thread(target=_one, args=(connection,), daemon=True).start()


def _one(connection: socket.socket) -> None:
    data, files, _, _ = socket.recv_fds(connection, 1 << 16, 3)
    while not data.endswith(b"\n"):
        more = connection.recv(1 << 16)
        if not more:
            return
        data += more
    asked = json.loads(data)
    try:
        program = subprocess.Popen(
            asked["args"],
            cwd=asked["cwd"],
            env={**os.environ, **asked["env"]},
            stdin=files[0],
            stdout=files[1],
            stderr=files[2],
            start_new_session=True,
        )
        _groups.append(program.pid)
    except OSError as error:
        _say(connection, {"errno": error.errno, "why": error.strerror, "file": error.filename})
        return
    finally:
        for file in files:
            os.close(file)
    _say(connection, {"pid": program.pid})
    threading.Thread(target=_signals, args=(connection, program), daemon=True).start()
    status = program.wait()
    try:
        os.killpg(program.pid, 0)
    except OSError:
        # nobody is left in its group, whose number may belong to others from now on
        _groups.remove(program.pid)
    _say(connection, {"status": status})


def _say(connection: socket.socket, what: object) -> None:
    try:
        connection.sendall(json.dumps(what).encode() + b"\n")
    except OSError:
        pass  # nobody waits for it any more


def _signals(connection: socket.socket, program: subprocess.Popen[bytes]) -> None:
    # each byte is the number of a signal; at the end of the connection the program ends
    while number := connection.recv(1):
        program.send_signal(number[0])
    program.kill()


if __name__ == "__main__":
    main(sys.argv[1])
