# SPDX-License-Identifier: Apache-2.0
"""PostgreSQL."""
import glob
import os
import signal

from .server import USER, PASSWORD, DATABASE, Failed, Server, program, run


class PostgreSql(Server):
    name = "postgresql"
    folders = ("/usr/lib/postgresql/*/bin",)

    # Without waiting for clients that keep their connections.
    stop_signal = signal.SIGINT

    @classmethod
    def tls_settings(cls, key, certificate):
        return {"ssl": "on", "ssl_key_file": key, "ssl_cert_file": certificate}

    def make(self, account):
        secret = os.path.join(self.directory, "password")
        with open(secret, "w", encoding="utf-8") as file:
            file.write(PASSWORD + "\n")
        if account:
            os.chown(secret, account["user"], account["group"])
        run([program("initdb", *self.folders), "-D", self.data, "-U", USER, "--pwfile", secret,
             "--auth", "scram-sha-256", "-E", "UTF8", "--locale", "C.UTF-8", "--no-instructions"],
            cwd=self.directory, **account)

    def command(self):
        settings = {"listen_addresses": self.host, "port": self.port, "max_connections": 250,
                    "unix_socket_directories": self.directory, "max_wal_size": "4GB",
                    "shared_buffers": "256MB", **self.settings}
        options = [f"--{name}={value}" for name, value in settings.items()]
        return [program("postgres", *self.folders), "-D", self.data, *options]

    def ended(self):
        # A dead server that nobody has waited for still counts as running for the next one.
        for stale in [os.path.join(self.data, "postmaster.pid"),
                      *glob.glob(os.path.join(self.directory, ".s.PGSQL.*"))]:
            if os.path.exists(stale):
                os.remove(stale)

    def psql(self, database, statement):
        # Whatever the settings are: the server is made ready with it.
        environment = dict(os.environ, PGPASSWORD=PASSWORD,
                           PGOPTIONS="-c default_transaction_read_only=off")
        return run([program("psql", *self.folders), "-h", self.host, "-p", str(self.port), "-U",
                    USER, "-d", database, "-Atqc", statement], env=environment)

    def answers(self):
        try:
            return self.psql("postgres", "SELECT 1").strip() == "1"
        except Failed:
            return False

    def prepare(self):
        self.psql("postgres", f"CREATE DATABASE {DATABASE}")
