"""Transfers between two hosts, one after the other, each checked byte by byte.

peers.py far BENTPIPE FOLDER           serves the orders of the other one, which come over a connection of their own
peers.py near BENTPIPE FOLDER PLAN     gives the orders in PLAN, a JSON list, and prints a JSON list of their results

An order has the keys `mode`, two of "engine" and "kernel" (who sends, who receives), `from` ("near" or "far"), `v6`, `bytes`, `seed` and `tcp` (words for
the command line of the engine's sender; the first is the scheme).
"""

import hashlib
import json
import os
import random
import socket
import subprocess
import sys
import time

CONTROL = 4000
LIMIT = 240
CHUNK = 1 << 18
# a point of a receiver's curve, at most so often
POINT_S = 0.05


def content(order):
    source, size = random.Random(order["seed"]), order["bytes"]
    # in pieces: more than 256 MiB at once are too many bits for an int of C
    return b"".join(source.randbytes(min(CHUNK, size - at)) for at in range(0, size, CHUNK))


def digest(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def address_of(host, v6):
    return socket.getaddrinfo(host, None, socket.AF_INET6 if v6 else socket.AF_INET)[0][4][0]


def family(order):
    return socket.AF_INET6 if order["v6"] else socket.AF_INET


class Receiver:
    """Waits for the bytes of an order at `port`."""

    def __init__(self, order, me, bentpipe, folder, port):
        self.order, self.path = order, os.path.join(folder, f"received-{me}")
        self.kernel = order["mode"][1] == "kernel"
        address = address_of(me, order["v6"])
        if self.kernel:
            self.listener = socket.socket(family(order), socket.SOCK_STREAM)
            self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self.listener.bind((address, port))
            self.listener.listen(1)
            self.listener.settimeout(LIMIT)
            return
        shown = f"[{address}]" if order["v6"] else address
        self.program = subprocess.Popen(
            [bentpipe, "receive", f"{shown}:{port}", self.path, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        # it says so when it listens
        self.talk = self.program.stderr.readline()

    def finish(self):
        if not self.kernel:
            _, talk = self.program.communicate(timeout=LIMIT)
            fault = "" if self.program.returncode == 0 else f"receive ended with {self.program.returncode}: {self.talk}{talk}"
            return {"fault": fault, "digest": digest(self.path) if not fault else ""}
        caller, _ = self.listener.accept()
        start = time.monotonic()
        self.listener.close()
        caller.settimeout(LIMIT)
        hashed, size, curve = hashlib.sha256(), 0, []
        with caller:
            while data := caller.recv(CHUNK):
                at = time.monotonic() - start
                size += len(data)
                if not curve or at - curve[-1][0] >= POINT_S:
                    curve.append([round(at, 6), size])
                hashed.update(data)
        return {"fault": "", "digest": hashed.hexdigest(), "curve": curve}


def send(order, me, bentpipe, folder, port):
    other = address_of("far" if me == "near" else "near", order["v6"])
    data = content(order)
    if order["mode"][0] == "kernel":
        # the handshake counts, as it does for the engine
        start = time.monotonic()
        with socket.create_connection((other, port), LIMIT) as peer:
            if order["tcp"]:
                peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, order["tcp"][0].encode())
            peer.sendall(data)
            peer.shutdown(socket.SHUT_WR)
            while peer.recv(CHUNK):
                pass
            return {"fault": "", "seconds": time.monotonic() - start}
    path = os.path.join(folder, f"sent-{me}")
    with open(path, "wb") as file:
        file.write(data)
    words = [bentpipe, "send", f"[{other}]:{port}" if order["v6"] else f"{other}:{port}", path, "--json"]
    if order["tcp"]:
        words += ["--tcp", *order["tcp"]]
    done = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT)
    if done.returncode != 0:
        return {"fault": f"send ended with {done.returncode}: {done.stderr}", "seconds": 0}
    flow = json.loads(done.stdout)["flows"][0]
    return {"fault": "", "seconds": flow["finished_s"] - flow["start_s"], "flow": flow}


def lines(peer):
    file = peer.makefile("rw")
    return (lambda: json.loads(file.readline())), (lambda value: (file.write(json.dumps(value) + "\n"), file.flush()))


def far(bentpipe, folder):
    listener = socket.create_server((address_of("far", False), CONTROL))
    peer, _ = listener.accept()
    get, put = lines(peer)
    while order := get():
        port = order["port"]
        if order["from"] == "near":
            receiver = Receiver(order, "far", bentpipe, folder, port)
            put("ready")
            put(receiver.finish())
        else:
            put("ready")
            put(send(order, "far", bentpipe, folder, port))
    put("bye")


def near(bentpipe, folder, plan):
    for _ in range(200):
        try:
            peer = socket.create_connection((address_of("far", False), CONTROL), 5)
            break
        except OSError:
            time.sleep(0.1)
    get, put = lines(peer)
    results = []
    with open(plan) as file:
        orders = json.load(file)
    for i, order in enumerate(orders):
        # a port of its own each: an old connection may linger at the last one
        order["port"] = port = 5000 + i % 20000
        if order["from"] == "near":
            put(order)
            get()
            sent = send(order, "near", bentpipe, folder, port)
            received = get()
        else:
            receiver = Receiver(order, "near", bentpipe, folder, port)
            put(order)
            get()
            received = receiver.finish()
            sent = get()
        fault = sent["fault"] or received["fault"]
        if not fault and received["digest"] != hashlib.sha256(content(order)).hexdigest():
            fault = "what arrived is not what was sent"
        results.append({"fault": fault, "seconds": sent["seconds"], "flow": sent.get("flow"), "curve": received.get("curve", [])})
    put(None)
    get()
    json.dump(results, sys.stdout)


if __name__ == "__main__":
    if sys.argv[1] == "far":
        far(*sys.argv[2:4])
    else:
        near(*sys.argv[2:5])
