#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Real servers for tests, benchmarks and people: each on a private port and in a private directory,
on the loopback address, as an unprivileged user when we are root.

    tools/server.py start postgresql|mariadb|redis|redis-cluster|kafka|pulsar|rabbitmq|mosquitto
                    --dir DIR [--port N] [--host ADDRESS] [--set NAME=VALUE ...] [--disk SIZE]
                    [--tls] [--locale NAME]
    tools/server.py stop|kill|restart|remove|status --dir DIR
    tools/server.py freeze|thaw --dir DIR
    tools/server.py fill|free --dir DIR
    tools/server.py url --dir DIR
    tools/server.py fetch

`start` makes the data directory when it is new, waits until the server answers and prints its URL
for --store. The server listens on one address, 127.0.0.1 or --host (for example ::1). `kill` is
SIGKILL to all its processes; `start` after it recovers; `remove` also takes the directory away.
`freeze` stops all its processes as they are (SIGSTOP): connections stay open and nothing answers,
until `thaw`. With --disk (root only) the data are on a file system of that size, which `fill` fills
to the last byte and `free` relieves. With --tls the server has a certificate that
DIR/tls/ca.pem vouches for, and DIR/tls/other_ca.pem does not; Kafka then also asks for the user and
the password of the URL (SCRAM or PLAIN), and Pulsar for the token in it. DIR/ctl is the rabbitmqctl
of a server of RabbitMQ. With --locale the server runs under that locale, which is compiled for it
alone (Debian's package "locales" has the sources). `fetch` gets the jars of the servers that need
some, which `start` does too. Exit codes: 0 done, 1 failed, 77 this machine
does not have the server.
"""
import argparse
import os
import signal
import sys

from servers import KINDS, load
from servers.java import JavaServer
from servers.process import is_alive, children_of, send, end
from servers.server import (LOOPBACK, MISSING, Failed, Missing, free_port, make_certificates,
                            make_locale)


def fetch():
    for kind in KINDS.values():
        if issubclass(kind, JavaServer):
            try:
                kind.jars()
            except (Failed, Missing) as failure:  # the tests that need it say so, too
                print(f"server: {kind.name}: {failure}", file=sys.stderr)
    return 0


def start(options):
    if os.path.exists(os.path.join(options.dir, "server.json")):
        server, pid = load(options.dir)
        if is_alive(pid):
            raise Failed(f"{options.dir}: the server is running already, process {pid}")
        server.ended()  # perhaps by itself
    else:
        settings = dict(setting.split("=", 1) for setting in options.set)
        kind = KINDS[options.kind]
        if options.tls:
            settings = {**kind.tls_settings(*make_certificates(options.dir)), **settings}
        if options.locale:
            make_locale(options.dir, options.locale)
        port = options.port or free_port(options.host)
        server = kind(options.dir, port, settings, options.disk, options.host)
    server.start()
    print(server.url())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("action", choices=["start", "stop", "kill", "restart", "remove", "status",
                                           "freeze", "thaw", "fill", "free", "url", "fetch"])
    parser.add_argument("kind", nargs="?", choices=sorted(KINDS))
    parser.add_argument("--dir")
    parser.add_argument("--host", default=LOOPBACK, metavar="ADDRESS")
    parser.add_argument("--port", type=int)
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--disk", metavar="SIZE")
    parser.add_argument("--tls", action="store_true")
    parser.add_argument("--locale", metavar="NAME")
    options = parser.parse_args()
    if options.action == "fetch":
        return fetch()
    if not options.dir:
        parser.error("--dir is required")
    options.dir = os.path.abspath(options.dir)
    if options.action == "start" and not options.kind:
        known = os.path.exists(os.path.join(options.dir, "server.json"))
        if not known:
            parser.error("start what? " + ", ".join(sorted(KINDS)))
    try:
        if options.action == "start":
            start(options)
            return 0
        server, pid = load(options.dir)
        if options.action == "url":
            print(server.url())
        elif options.action == "status":
            print("running" if is_alive(pid) else "stopped")
        elif options.action in ("freeze", "thaw"):
            for member in [pid, *children_of(pid)]:
                send(member, signal.SIGSTOP if options.action == "freeze" else signal.SIGCONT)
        elif options.action == "fill":
            server.fill()
        elif options.action == "free":
            server.free()
        elif options.action == "remove":
            end(server, pid, signal.SIGKILL)
            server.remove()
        else:
            end(server, pid, signal.SIGKILL if options.action == "kill" else server.stop_signal)
            if options.action == "restart":
                server.start()
                print(server.url())
        return 0
    except Missing as missing:
        print(f"skipped: {missing}", file=sys.stderr)
        return MISSING
    except Failed as failure:
        print(f"server: {failure}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
