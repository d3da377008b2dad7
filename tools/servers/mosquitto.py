# SPDX-License-Identifier: Apache-2.0
"""Mosquitto."""
import os
import socket
import ssl
import struct

from .server import USER, PASSWORD, Server, program, run


class Mosquitto(Server):
    """An MQTT broker. The topics below forbidden/ are nobody's; all others are the user's."""

    name = "mosquitto"

    def url(self):
        scheme = "mqtts" if self.encrypts() else "mqtt"
        return f"{scheme}://{USER}:{PASSWORD}@{self.at(self.port)}"

    @classmethod
    def tls_settings(cls, key, certificate):
        return {"keyfile": key, "certfile": certificate}

    def encrypts(self):
        return "certfile" in self.settings

    def file(self, name):
        return os.path.join(self.directory, name)

    def make(self, account):
        os.makedirs(self.data)
        run([program("mosquitto_passwd"), "-b", "-c", self.file("passwords"), USER, PASSWORD])
        with open(self.file("rights"), "w", encoding="utf-8") as file:
            file.write(f"user {USER}\ntopic readwrite #\ntopic deny forbidden/#\n")
        settings = {
            "listener": f"{self.port} {self.host}", "allow_anonymous": "false",
            "password_file": self.file("passwords"), "acl_file": self.file("rights"),
            "persistence": "true", "persistence_location": self.data + "/",
            # What is acknowledged is on disk, as far as this broker can: it writes all of it after
            # each round of work. By itself it does so every half hour.
            "autosave_on_changes": "true", "autosave_interval": "1",
            # By itself it drops what is more than 1,000 messages behind.
            "max_queued_messages": "0", "max_inflight_messages": "1000",
            "set_tcp_nodelay": "true", "log_dest": "stdout", **self.settings}
        with open(self.file("mosquitto.conf"), "w", encoding="utf-8") as file:
            file.writelines(f"{name} {value}\n" for name, value in settings.items())
        for name in ("passwords", "rights", "mosquitto.conf", "data"):
            os.chmod(self.file(name), 0o700 if name == "data" else 0o600)
            if account:
                os.chown(self.file(name), account["user"], account["group"])

    def command(self):
        return [program("mosquitto", "/usr/sbin"), "-c", self.file("mosquitto.conf")]

    def answers(self):
        """Connects (CONNECT, version 3.1.1): the answer is a CONNACK that says yes."""
        words = b"".join(struct.pack(">H", len(word)) + word
                         for word in (b"ready", USER.encode(), PASSWORD.encode()))
        body = b"\0\4MQTT\4\xc2\0\0" + words
        try:
            with socket.create_connection((self.host, self.port), timeout=5) as connection:
                if self.encrypts():
                    context = ssl.create_default_context()
                    context.check_hostname = False
                    context.verify_mode = ssl.CERT_NONE
                    connection = context.wrap_socket(connection)
                connection.sendall(bytes([0x10, len(body)]) + body)
                answer = b""
                while len(answer) < 4:
                    more = connection.recv(4 - len(answer))
                    if not more:
                        return False
                    answer += more
                return answer == b"\x20\2\0\0"
        except OSError:
            return False
