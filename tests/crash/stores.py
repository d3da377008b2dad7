# SPDX-License-Identifier: Apache-2.0
"""The stores on which crash_worker is killed: where each run keeps its data, and how to read it."""
import os
import shutil
import signal
import sqlite3
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../../tools"))
import servers  # noqa: E402
from servers.process import end  # noqa: E402
from servers.server import DATABASE, free_port  # noqa: E402


class Scratch:
    """A directory in memory where there is one: these tests kill processes, not machines."""

    def __enter__(self):
        base = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.path = tempfile.mkdtemp(prefix="once_crash_", dir=base)
        return self.path

    def __exit__(self, *_):
        shutil.rmtree(self.path, ignore_errors=True)


class Sqlite:
    """A file in the directory of the run."""

    is_server = False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def make(self, directory):
        return f"sqlite:{directory}/shop.db"

    def ids(self, directory, table):
        database = sqlite3.connect(os.path.join(directory, "shop.db"))
        try:
            return [row[0] for row in database.execute(f"SELECT id FROM {table} ORDER BY n")]
        finally:
            database.close()


class OnServer:
    """One server for all runs; each has a place of its own in it, called like its directory."""

    is_server = True

    def __enter__(self):
        self.scratch = Scratch()
        home = os.path.join(self.scratch.__enter__(), "server")
        os.chmod(self.scratch.path, 0o755)
        self.server = servers.KINDS[self.kind](home, free_port(), {})
        self.server.start()
        return self

    def __exit__(self, *_):
        server, pid = servers.load(self.server.directory)
        end(server, pid, signal.SIGKILL)
        self.scratch.__exit__()

    def ids(self, directory, table):
        return self.ask(f"SELECT id FROM {os.path.basename(directory)}.{table} ORDER BY n").split()


class PostgreSql(OnServer):
    kind = "postgresql"

    def ask(self, statement):
        return self.server.psql(DATABASE, statement)

    def make(self, directory):
        place = os.path.basename(directory)
        self.ask(f"CREATE SCHEMA {place}")
        return f"{self.server.url()}?options=-csearch_path%3D{place}"


class MariaDb(OnServer):
    kind = "mariadb"

    def ask(self, statement):
        return self.server.ask(statement)

    def make(self, directory):
        place = os.path.basename(directory)
        self.ask(f"CREATE DATABASE {place}")
        for table in ("order_effects", "point_effects", "ship_effects"):
            self.ask(f"CREATE TABLE {place}.{table} (n BIGINT AUTO_INCREMENT PRIMARY KEY, id TEXT)")
        return self.server.url().rpartition("/")[0] + "/" + place


class Redis(OnServer):
    """Effects are the lines of a text under the name of the table."""

    kind = "redis"

    def make(self, directory):
        place = os.path.basename(directory)
        return f"{self.server.url()}?prefix={place}&keys={place}."

    def ids(self, directory, table):
        key = f"{os.path.basename(directory)}.{table}"
        return self.server.cli(self.server.port, "GET", key).split()


STORES = {"sqlite": Sqlite, "postgres": PostgreSql, "mysql": MariaDb, "redis": Redis}
