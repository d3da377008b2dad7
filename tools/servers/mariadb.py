# SPDX-License-Identifier: Apache-2.0
"""MariaDB."""
import os

from .server import USER, PASSWORD, DATABASE, Failed, Server, program, run


class MariaDb(Server):
    name = "mariadb"

    @classmethod
    def tls_settings(cls, key, certificate):
        return {"ssl": "on", "ssl_key": key, "ssl_cert": certificate}

    def url(self):
        return super().url().replace("mariadb://", "mysql://")

    def make(self, account):
        # Of its own: another server that starts removes temporary tables from a shared one.
        os.makedirs(os.path.join(self.directory, "tmp"), exist_ok=True)
        if account:
            os.chown(os.path.join(self.directory, "tmp"), account["user"], account["group"])
        run([program("mariadb-install-db"), "--no-defaults", f"--datadir={self.data}",
             "--auth-root-authentication-method=normal", "--skip-test-db"],
            cwd=self.directory, **account)

    def command(self):
        settings = {"port": self.port, "max_connections": 250, "innodb_buffer_pool_size": "512M",
                    "innodb_log_file_size": "512M", "character_set_server": "utf8mb4",
                    **self.settings}
        options = [f"--{name.replace('_', '-')}={value}" for name, value in settings.items()]
        return [program("mariadbd", "/usr/sbin"), "--no-defaults", f"--datadir={self.data}",
                f"--socket={self.directory}/socket", f"--pid-file={self.directory}/pid",
                f"--tmpdir={self.directory}/tmp",
                f"--bind-address={self.host}", "--skip-name-resolve", *options]

    def ask(self, statement):
        return run([program("mariadb"), "--no-defaults", f"--socket={self.directory}/socket", "-u",
                    "root", "-Nse", statement])

    def answers(self):
        try:
            return self.ask("SELECT 1").strip() == "1"
        except Failed:
            return False

    def prepare(self):
        self.ask("SET SESSION TRANSACTION READ WRITE; "
                 f"CREATE DATABASE {DATABASE}; CREATE USER {USER}@'%' IDENTIFIED BY '{PASSWORD}'; "
                 f"GRANT ALL ON *.* TO {USER}@'%' WITH GRANT OPTION")
