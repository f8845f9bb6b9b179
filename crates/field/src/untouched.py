"""One kind of connection between kernel hosts: `untouched.py serve|call KIND ADDRESS`. Messages are smaller than a segment, so none is cut or joined on the way."""
import socket, sys, time

role, kind, address = sys.argv[1:4]
PORT, MSG_FASTOPEN, IPPROTO_MPTCP = 5401, 0x20000000, 262
SIZES = [300, 1200, 700, 10, 900]

if kind == "quic":
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    if role == "serve":
        s.bind((address, PORT))
        print("ready", flush=True)
        while True:
            data, peer = s.recvfrom(2000)
            s.sendto(data[::-1], peer)
    s.settimeout(5)
    for size in SIZES:
        # a long header of version 1 (RFC 9000, section 17.2), then anything
        s.sendto(bytes([0xc0, 0, 0, 0, 1]) + bytes(i % 251 for i in range(size)), (address, PORT))
        s.recvfrom(2000)
    sys.exit()

s = socket.socket(socket.AF_INET, socket.SOCK_STREAM, IPPROTO_MPTCP if kind == "mptcp" else 0)
if role == "serve":
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind((address, PORT))
    if kind == "fastopen":
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_FASTOPEN, 16)
    s.listen(8)
    print("ready", flush=True)
    while True:
        c, _ = s.accept()
        while data := c.recv(4096):
            c.sendall(data[::-1])
        c.close()

for again in range(2 if kind == "fastopen" else 1):      # the second time with the cookie, so that its SYN carries data
    if again:
        s = socket.socket()
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if kind == "keepalive":
        s.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 1)
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 1)
    sizes = list(SIZES)
    if kind == "fastopen":
        # blocking: what is not taken at once is not sent with the SYN
        s.sendto(bytes(100), MSG_FASTOPEN, (address, PORT))
        s.settimeout(10)
        got = 0
        while got < 100:
            got += len(s.recv(4096))
    else:
        s.settimeout(10)
        s.connect((address, PORT))
    for size in sizes:
        s.sendall(bytes(i % 249 for i in range(size)))
        got = 0
        while got < size:
            got += len(s.recv(4096))
    if kind == "keepalive":
        time.sleep(2.5)
    s.close()
    time.sleep(0.3)
