# SPDX-License-Identifier: Apache-2.0
"""Kafka, one broker."""
import os
import shutil
import socket
import ssl
import struct

from .java import JavaServer
from .server import PASSWORD, USER, free_port, program, run


class Kafka(JavaServer):
    """One process that is broker and controller (KRaft), from the jars that tools/kafka names."""

    scram = ("SCRAM-SHA-256", "SCRAM-SHA-512")

    name = "kafka"

    def url(self):
        user = f"{USER}:{PASSWORD}@" if self.encrypts() else ""
        return f"kafka://{user}{self.at(self.port)}"

    @classmethod
    def tls_settings(cls, key, certificate):
        both = key.replace(".key", ".both")
        shutil.copy2(key, both)  # with its rights
        shutil.chown(both, os.stat(key).st_uid, os.stat(key).st_gid)
        with open(both, "a", encoding="utf-8") as file, open(certificate, encoding="utf-8") as more:
            file.write(more.read())
        modules = "org.apache.kafka.common.security"
        login = {f"listener.name.sasl_ssl.{name.lower()}.sasl.jaas.config":
                 f"{modules}.scram.ScramLoginModule required;" for name in cls.scram}
        return {"ssl.keystore.type": "PEM", "ssl.keystore.location": both,
                "sasl.enabled.mechanisms": ",".join([*cls.scram, "PLAIN"]), **login,
                "listener.name.sasl_ssl.plain.sasl.jaas.config":
                f'{modules}.plain.PlainLoginModule required user_{USER}="{PASSWORD}";'}

    def encrypts(self):
        return "ssl.keystore.location" in self.settings

    def java(self, main, *arguments):
        return [program("java"), "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
                "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", self.jars(), main,
                *arguments]

    def make(self, account):
        program("java")
        controller = free_port(self.host)
        # Brokers among themselves, and we when we ask whether it answers, need no certificate.
        plain = free_port(self.host) if self.encrypts() else self.port
        listeners = [f"PLAINTEXT://{self.at(plain)}"]
        if self.encrypts():
            listeners.append(f"SASL_SSL://{self.at(self.port)}")
        settings = {
            "process.roles": "broker,controller", "node.id": "1",
            "controller.quorum.voters": f"1@{self.at(controller)}",
            "controller.listener.names": "CONTROLLER",
            "listeners": ",".join([*listeners, f"CONTROLLER://{self.at(controller)}"]),
            "advertised.listeners": ",".join(listeners),
            "listener.security.protocol.map":
            "PLAINTEXT:PLAINTEXT,SASL_SSL:SASL_SSL,CONTROLLER:PLAINTEXT",
            "log.dirs": self.data, "auto.create.topics.enable": "false",
            # Messages of tests have dates that are long past: nothing is deleted for its age.
            "log.initial.task.delay.ms": "86400000",
            # A killed broker may come back at once.
            "broker.session.timeout.ms": "1000", "broker.heartbeat.interval.ms": "200",
            "group.initial.rebalance.delay.ms": "0", "group.min.session.timeout.ms": "1000",
            "offsets.topic.replication.factor": "1", "offsets.topic.num.partitions": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1", "transaction.state.log.num.partitions": "1",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            **self.settings}
        with open(self.properties(), "w", encoding="utf-8") as file:
            file.writelines(f"{name}={value}\n" for name, value in settings.items())
        os.chmod(self.properties(), 0o644)
        users = []
        for mechanism in self.scram if self.encrypts() else ():
            users += ["--add-scram", f"{mechanism}=[name={USER},password={PASSWORD}]"]
        run(self.java("kafka.tools.StorageTool", "format", "-t", "b25jZS1rYWZrYS10ZXN0cw", "-c",
                      self.properties(), *users), cwd=self.directory, **account)

    def properties(self):
        return os.path.join(self.directory, "kafka.properties")

    def plain_port(self):
        with open(self.properties(), encoding="utf-8") as file:
            listeners = next(line for line in file if line.startswith("listeners="))
        return int(listeners.split(",")[0].rsplit(":", 1)[1])

    def command(self):
        return self.java("kafka.Kafka", self.properties())

    def answers(self):
        """Asks for the brokers (Metadata, version 1, no topics): there must be one."""
        body = struct.pack(">hhih", 3, 1, 1, -1) + struct.pack(">i", 0)
        try:
            address = (self.host, self.plain_port())
            with socket.create_connection(address, timeout=5) as connection:
                connection.sendall(struct.pack(">i", len(body)) + body)
                answer = connection.recv(4 + 4 + 4, socket.MSG_WAITALL)
                return len(answer) == 12 and struct.unpack(">iii", answer)[2] > 0
        except OSError:
            return False
