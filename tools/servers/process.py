# SPDX-License-Identifier: Apache-2.0
"""The processes of a server."""
import os
import signal
import time

from .server import ANSWER_SECONDS


def status_of(pid):
    """State and parent of a process; None when there is none."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return fields[0], int(fields[1])
    except (FileNotFoundError, ProcessLookupError):
        return None


def is_alive(pid):
    status = status_of(pid)
    return status is not None and status[0] != "Z"


def children_of(pid):
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    return [child for child in pids if (status_of(child) or ("", 0))[1] == pid]


def send(pid, how):
    try:
        os.kill(pid, how)
    except ProcessLookupError:
        pass


def end(server, pid, how):
    """Ends the server and its children, and waits until they are gone."""
    if not is_alive(pid):
        return
    family = [pid, *children_of(pid)]
    for member in family if how == signal.SIGKILL else [pid]:
        send(member, how)
    deadline = time.monotonic() + ANSWER_SECONDS
    while any(is_alive(member) for member in family):
        # Helpers of a server that has ended are of no use to anybody.
        if time.monotonic() > deadline or not is_alive(pid):
            for member in family:
                send(member, signal.SIGKILL)
        time.sleep(0.02)
    server.ended()
