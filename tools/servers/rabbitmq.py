# SPDX-License-Identifier: Apache-2.0
"""RabbitMQ."""
import glob
import json
import os
import shlex
import socket
import ssl

from .server import LOOPBACK, USER, PASSWORD, DATABASE, Server, program, free_port


class RabbitMq(Server):
    """One node, with a port mapper (epmd) of its own."""

    name = "rabbitmq"
    folders = ("/usr/lib/rabbitmq/bin",)

    def url(self):
        scheme = "amqps" if self.encrypts() else "amqp"
        return f"{scheme}://{USER}:{PASSWORD}@{self.at(self.port)}/{DATABASE}"

    @classmethod
    def tls_settings(cls, key, certificate):
        authority = os.path.join(os.path.dirname(certificate), "ca.pem")
        return {"ssl_options.keyfile": key, "ssl_options.certfile": certificate,
                "ssl_options.cacertfile": authority, "ssl_options.verify": "verify_peer",
                "ssl_options.fail_if_no_peer_cert": "false"}

    def encrypts(self):
        return "ssl_options.certfile" in self.settings

    def make(self, account):
        program("rabbitmq-server", *self.folders)
        os.makedirs(self.data)
        settings = {
            # Without the brackets of a URL.
            f"listeners.{'ssl' if self.encrypts() else 'tcp'}.default": f"{self.host}:{self.port}",
            "default_user": USER, "default_pass": PASSWORD, "default_vhost": DATABASE,
            "loopback_users": "none", "disk_free_limit.absolute": "1MB", **self.settings}
        if self.encrypts():
            settings["listeners.tcp"] = "none"
        with open(self.inside("rabbitmq.conf"), "w", encoding="utf-8") as file:
            file.writelines(f"{name} = {value}\n" for name, value in settings.items())
        with open(self.inside("plugins"), "w", encoding="utf-8") as file:
            file.write("[].\n")
        ports = {"ERL_EPMD_PORT": free_port(), "RABBITMQ_DIST_PORT": free_port()}
        with open(self.inside("ports.json"), "w", encoding="utf-8") as file:
            json.dump({name: str(port) for name, port in ports.items()}, file)
        control = os.path.join(self.directory, "ctl")
        words = [f"{name}={value}" for name, value in self.own_environment().items()]
        with open(control, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\nexec env " + shlex.join(
                [*words, program("rabbitmqctl", *self.folders)]) + ' "$@"\n')
        os.chmod(control, 0o755)
        if account:
            for made in [self.data, *glob.glob(os.path.join(self.data, "*"))]:
                os.chown(made, account["user"], account["group"])

    def inside(self, name):
        return os.path.join(self.data, name)

    def own_environment(self):
        with open(self.inside("ports.json"), encoding="utf-8") as file:
            ports = json.load(file)
        quiet = "+S 2:2 +sbwt none +sbwtdcpu none +sbwtdio none"
        loopback = "-kernel inet_dist_use_interface {127,0,0,1}"
        return {**ports, "ERL_EPMD_ADDRESS": LOOPBACK, "HOME": self.data,
                # Is part of the paths of its data.
                "RABBITMQ_NODENAME": "once@localhost",
                "RABBITMQ_CONFIG_FILE": self.inside("rabbitmq.conf"),
                "RABBITMQ_CONF_ENV_FILE": self.inside("rabbitmq-env.conf"),
                "RABBITMQ_ADVANCED_CONFIG_FILE": self.inside("advanced.config"),
                "RABBITMQ_ENABLED_PLUGINS_FILE": self.inside("plugins"),
                "RABBITMQ_MNESIA_BASE": self.inside("mnesia"),
                "RABBITMQ_LOG_BASE": self.inside("log"), "RABBITMQ_LOGS": "-",
                "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": f"{quiet} {loopback}",
                # The script becomes the server, which ends by SIGTERM.
                "RUNNING_UNDER_SYSTEMD": "true"}

    def environment(self):
        return {**os.environ, **self.own_environment()}

    def command(self):
        mapper = shlex.join([program("epmd"), "-relaxed_command_check"])
        server = shlex.join([program("rabbitmq-server", *self.folders)])
        return ["/bin/sh", "-c", f"{mapper} & exec {server}"]

    def answers(self):
        """Asks for the protocol AMQP 0-9-1: the answer is a frame of a method."""
        try:
            with socket.create_connection((self.host, self.port), timeout=5) as connection:
                if self.encrypts():
                    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
                    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
                    context.load_cert_chain(*(os.path.join(self.directory, "tls", "client" + end)
                                              for end in (".pem", ".key")))
                    connection = context.wrap_socket(connection)
                connection.sendall(b"AMQP\0\0\x09\x01")
                return connection.recv(1) == b"\1"
        except OSError:
            return False
