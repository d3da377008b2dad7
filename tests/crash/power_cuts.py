#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Cuts the power of a file system under the log, again and again.

    power_cuts.py POWER_WRITER [CUTS]

A file system in a file is mounted through a loop device. While the writer sends, it is frozen, the
file system is shut down without writing its journal, and the writer is killed: what was not synced
is gone. Then the file system is mounted again. Every message that was acknowledged must be there,
once, in order, for a reader before any writer has come, and for the next writer. The control runs
the same on files that do not sync, and must lose messages: otherwise this test proves nothing.

Exit code 77 (skipped) where no file system can be mounted.
"""
import fcntl
import os
import random
import select
import shutil
import struct
import subprocess
import sys
import tempfile
import time

EXIT_SKIPPED = 77
IMAGE_MIB = {"ext4": 64, "xfs": 320}  # mkfs.xfs makes none below 300 MiB; the file is sparse
SHUTDOWN = (2 << 30) | (4 << 16) | (ord("X") << 8) | 125  # _IOR('X', 125, u32), of ext4 and xfs
WITHOUT_JOURNAL = 2
SECONDS_MAX = 170
CONTROL_CUTS = 8


def skip(reason):
    print(f"SKIPPED: {reason}")
    sys.exit(EXIT_SKIPPED)


def run(*command, check=True):
    return subprocess.run(command, capture_output=True, text=True, check=check, timeout=60)


class Disk:
    """A file system in a file, below a private directory."""

    def __init__(self, kind):
        self.home = tempfile.mkdtemp(prefix="once-power-")
        self.image = os.path.join(self.home, "image")
        self.mount_point = os.path.join(self.home, "mount")
        self.mounted = False
        os.mkdir(self.mount_point)
        with open(self.image, "wb") as file:
            file.truncate(IMAGE_MIB[kind] << 20)
        options = ["-F"] if kind == "ext4" else ["-f"]
        run(f"mkfs.{kind}", "-q", *options, self.image)

    def mount(self):
        done = run("mount", "-o", "loop", self.image, self.mount_point, check=False)
        self.mounted = done.returncode == 0
        return done.stderr.strip()

    def unmount(self):
        for _ in range(50):
            if run("umount", self.mount_point, check=False).returncode == 0:
                self.mounted = False
                return
            time.sleep(0.1)
        sys.exit(f"{self.mount_point} stays busy")

    def cut(self):
        """From now on nothing reaches the image."""
        directory = os.open(self.mount_point, os.O_RDONLY)
        try:
            fcntl.ioctl(directory, SHUTDOWN, struct.pack("I", WITHOUT_JOURNAL))
        finally:
            os.close(directory)

    def remove(self):
        if self.mounted:
            self.unmount()
        shutil.rmtree(self.home)


def state_of(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        return file.read().rsplit(")", 1)[1].split()[0]


def freeze(writer):
    writer.send_signal(19)  # SIGSTOP
    deadline = time.monotonic() + 20
    while state_of(writer.pid) not in "TZ":
        if time.monotonic() > deadline:
            sys.exit("the writer cannot be frozen")
        time.sleep(0.001)


def write_until_cut(disk, program, mode, seconds, early):
    """How many messages were acknowledged before the cut. `early`: it may hit the recovery."""
    command = [program, "write", os.path.join(disk.mount_point, "data"), mode]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as writer:
        if not early:
            select.select([writer.stdout], [], [], 20)  # until it has begun
        time.sleep(seconds)
        if writer.poll() is not None:
            sys.exit(f"the writer ended: {writer.stderr.read().decode()}")
        freeze(writer)
        disk.cut()
        writer.kill()
        acknowledged = writer.stdout.read().split()
    return int(acknowledged[-1]) if acknowledged else 0


class Books:
    def __init__(self):
        self.cuts = 0
        self.acknowledged = 0
        self.lost = 0
        self.failures = []

    def check(self, program, disk, acknowledged, seed):
        self.cuts += 1
        self.acknowledged = max(self.acknowledged, acknowledged)
        directory = os.path.join(disk.mount_point, "data")
        read = run(program, "read", directory, check=False)
        ids = read.stdout.split()
        if read.returncode != 0 and self.acknowledged > 0:
            self.lost += self.acknowledged
            self.failures.append(f"cut {self.cuts} (seed {seed}): reader: {read.stderr.strip()}")
            return
        if ids != [f"m{i}" for i in range(len(ids))]:
            self.failures.append(f"cut {self.cuts} (seed {seed}): not m0, m1, ... in order, once")
        if len(ids) < self.acknowledged:
            self.lost += self.acknowledged - len(ids)
            self.failures.append(f"cut {self.cuts} (seed {seed}): {self.acknowledged} were "
                                 f"acknowledged, a reader finds {len(ids)}")
        if read.returncode != 0:
            return  # the power was cut before the topic was there
        opened = run(program, "open", directory, check=False)
        if opened.returncode != 0 or int(opened.stdout) < len(ids):
            self.failures.append(f"cut {self.cuts} (seed {seed}): writer: "
                                 f"{opened.stdout.strip()} {opened.stderr.strip()}")


def cut_again_and_again(program, kind, mode, cuts, deadline):
    seed = int(os.environ.get("ONCE_SEED", "1"))
    dice = random.Random(seed)
    books = Books()
    disk = Disk(kind)
    try:
        for _ in range(cuts):
            if time.monotonic() > deadline:
                break
            if reason := disk.mount():
                sys.exit(f"the image cannot be mounted again: {reason}")
            acknowledged = write_until_cut(disk, program, mode, dice.uniform(0.03, 0.4),
                                           early=dice.random() < 0.3)
            disk.unmount()
            if reason := disk.mount():
                sys.exit(f"the image cannot be mounted again: {reason}")
            books.check(program, disk, acknowledged, seed)
            disk.unmount()
            if books.failures and mode == "synced":
                break
            if mode == "unsynced":  # what is left is of no use for the next cut
                disk.remove()
                disk = Disk(kind)
                books.acknowledged = 0
    finally:
        disk.remove()
    return books


def check_machine():
    if os.geteuid() != 0:
        skip("only root may mount a file system; run this test as root")
    for tool in ("mkfs.ext4", "mount", "umount"):
        if shutil.which(tool) is None:
            skip(f"{tool} is not installed")
    disk = Disk("ext4")
    try:
        if reason := disk.mount():
            skip(f"no loop device can be mounted: {reason}")
        try:
            disk.cut()
        except OSError as error:
            skip(f"the file system cannot be shut down: {error}")
    finally:
        disk.remove()


def main():
    program = sys.argv[1]
    wanted = int(sys.argv[2]) if len(sys.argv) > 2 else 60
    check_machine()
    deadline = time.monotonic() + SECONDS_MAX
    kinds = ["ext4"] + (["xfs"] if shutil.which("mkfs.xfs") else [])
    failures, cuts = [], 0
    for kind in kinds:
        books = cut_again_and_again(program, kind, "synced", -(-wanted // len(kinds)), deadline)
        cuts += books.cuts
        failures += books.failures
        print(f"{kind}: {books.cuts} power cuts, {books.acknowledged} messages acknowledged, "
              f"{books.lost} lost")
    control = cut_again_and_again(program, "ext4", "unsynced", CONTROL_CUTS, deadline + 30)
    print(f"control without syncs: {control.cuts} power cuts, {control.lost} messages lost")
    for failure in failures[:20]:
        print(failure)
    if failures:
        sys.exit(1)
    if control.lost == 0:
        sys.exit("the control lost nothing, so this test proves nothing")
    if cuts < wanted:
        sys.exit(f"only {cuts} of {wanted} power cuts in {SECONDS_MAX} seconds")


if __name__ == "__main__":
    main()
