# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""incast.py: many small answers at once from several hosts, beside a long transfer from each.

    python3 incast.py serve                      on the hosts that answer
    python3 incast.py ask 10.0.0.2 10.0.0.3      on the host that asks; prints completion times of requests

A request asks every connection for an answer and is complete with the last byte of the last one. All connections are open
before the first request. A pause of random length, the same ones in each run, lies between two requests.
"""

import argparse
import random
import selectors
import socket
import threading
import time

PORT = 5300
CHUNK = bytes(65536)


def answer(connection):
    """Sends as many bytes as each line of the other end says."""
    with connection, connection.makefile("rb") as lines:
        try:
            for line in lines:
                left = int(line)
                while left > 0:
                    left -= connection.send(CHUNK[:left])
        except OSError:
            pass  # the other end has gone


def serve():
    with socket.create_server(("", PORT), backlog=256) as listener:
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=answer, args=(connection,), daemon=True).start()


def connect(host):
    """A connection, as soon as the host answers, within a minute."""
    until = time.monotonic() + 60
    while True:
        try:
            connection = socket.create_connection((host, PORT))
            break
        except ConnectionRefusedError:
            if time.monotonic() > until:
                raise SystemExit(f"incast: {host} does not answer; run there: python3 incast.py serve")
            time.sleep(0.2)  # machine: between two looks
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


class Transfers:
    """Connections, with the bytes that each still has to receive."""

    def __init__(self):
        self.selector = selectors.DefaultSelector()
        self.left = {}
        self.received = 0

    def begin(self, connection, size):
        connection.sendall(b"%d\n" % size)
        if connection not in self.left:
            self.selector.register(connection, selectors.EVENT_READ)
        self.left[connection] = size

    def receive(self, timeout):
        for key, _ in self.selector.select(timeout):
            count = len(key.fileobj.recv(65536))
            if count == 0:
                raise SystemExit("incast: an answering host has closed a connection")
            self.left[key.fileobj] -= count
            self.received += count


def ask(args):
    pauses = random.Random(1)
    small, transfers = [connect(host) for host in args.hosts for _ in range(args.connections)], Transfers()
    for host in args.hosts * args.bulk:
        transfers.begin(connect(host), 10**12)
    times_ms, begin = [], time.monotonic()
    for _ in range(args.requests):
        next_request = time.monotonic() + pauses.uniform(0.5, 1.5) * args.pause / 1000
        while (left := next_request - time.monotonic()) > 0:
            transfers.receive(left)
        started = time.monotonic()
        for connection in small:
            transfers.begin(connection, args.answer)
        while any(transfers.left[connection] > 0 for connection in small):
            transfers.receive(None)
        times_ms.append((time.monotonic() - started) * 1000)
    mbit_per_s = transfers.received * 8e-6 / (time.monotonic() - begin)
    times_ms.sort()
    part = lambda share: times_ms[min(int(share * len(times_ms)), len(times_ms) - 1)]
    print(
        f"{args.requests} requests of {len(small)} answers of {args.answer} B: median {part(0.5):.1f} ms, "
        f"p90 {part(0.9):.1f} ms, worst {times_ms[-1]:.1f} ms, mean {sum(times_ms) / len(times_ms):.1f} ms; "
        f"{sum(t > 200 for t in times_ms)} above 200 ms; received {mbit_per_s:.1f} Mbit/s"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("serve")
    asking = commands.add_parser("ask")
    asking.add_argument("hosts", nargs="+")
    asking.add_argument("--connections", type=int, default=8, help="to each host")
    asking.add_argument("--answer", type=int, default=2000, help="bytes")
    asking.add_argument("--requests", type=int, default=60)
    asking.add_argument("--pause", type=float, default=200, help="mean, ms")
    asking.add_argument("--bulk", type=int, default=1, help="long transfers from each host")
    args = parser.parse_args()
    if args.command == "serve":
        serve()
    else:
        ask(args)


main()
