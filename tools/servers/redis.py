# SPDX-License-Identifier: Apache-2.0
"""Redis, alone and as a cluster."""
import json
import os
import shlex
import time

from .server import ANSWER_SECONDS, PASSWORD, Failed, Server, program, free_port, run


class Redis(Server):
    name = "redis"

    def url(self):
        return f"redis://:{PASSWORD}@{self.at(self.port)}"

    def make(self, account):
        os.makedirs(self.data)
        if account:
            os.chown(self.data, account["user"], account["group"])

    def command(self):
        settings = {"port": self.port, "bind": self.host, "dir": self.data, "appendonly": "yes",
                    "appendfsync": "always", "maxmemory-policy": "noeviction", "save": "",
                    "requirepass": PASSWORD, **self.settings}
        command = [program("redis-server")]
        for name, value in settings.items():
            command += [f"--{name}", str(value)]
        return command

    def cli(self, port, *words):
        return run([program("redis-cli"), "-h", self.host, "-p", str(port), *words],
                   env=dict(os.environ, REDISCLI_AUTH=PASSWORD))

    def answers(self):
        try:
            return self.cli(self.port, "PING").strip() == "PONG"
        except Failed:
            return False


class RedisCluster(Redis):
    """Three nodes without replicas; the port is that of the first."""

    name = "redis-cluster"
    nodes = 3

    def make(self, account):
        super().make(account)
        ports = [self.port] + [free_port(self.host) for _ in range(2 * self.nodes - 1)]
        with open(self.ports_file(), "w", encoding="utf-8") as file:
            json.dump(ports, file)
        for port in ports[:self.nodes]:
            folder = os.path.join(self.data, str(port))
            os.makedirs(folder)
            if account:
                os.chown(folder, account["user"], account["group"])

    def ports_file(self):
        return os.path.join(self.directory, "ports.json")

    def ports(self):
        """Of the nodes, and of their links among each other."""
        with open(self.ports_file(), encoding="utf-8") as file:
            ports = json.load(file)
        return ports[:self.nodes], ports[self.nodes:]

    def command(self):
        commands = []
        for port, link in zip(*self.ports()):
            node = Redis(self.directory, port, {
                "dir": os.path.join(self.data, str(port)), "cluster-enabled": "yes",
                "cluster-port": link, "cluster-node-timeout": "2000", "masterauth": PASSWORD,
                **self.settings}, host=self.host)
            commands.append(shlex.join(node.command()) + " &")
        return ["/bin/sh", "-c", "trap 'kill $(jobs -p)' TERM\n" + "\n".join(commands) +
                "\nwait; wait"]

    def answers(self):
        try:
            return all(self.cli(port, "PING").strip() == "PONG" for port in self.ports()[0])
        except Failed:
            return False

    def prepare(self):
        nodes = [self.at(port) for port in self.ports()[0]]
        self.cli(self.port, "--cluster", "create", *nodes, "--cluster-yes")
        deadline = time.monotonic() + ANSWER_SECONDS
        while not all("cluster_state:ok" in self.cli(port, "CLUSTER", "INFO")
                      for port in self.ports()[0]):
            if time.monotonic() > deadline:
                raise Failed(f"the cluster does not come together; see {self.log}")
            time.sleep(0.05)
