# SPDX-License-Identifier: Apache-2.0
"""The kinds of servers: a module for each."""
import json
import os

from .kafka import Kafka
from .mariadb import MariaDb
from .mosquitto import Mosquitto
from .postgresql import PostgreSql
from .pulsar import Pulsar
from .rabbitmq import RabbitMq
from .redis import Redis, RedisCluster
from .server import Failed

KINDS = {kind.name: kind
         for kind in (Kafka, Pulsar, RabbitMq, Mosquitto, PostgreSql, MariaDb, Redis, RedisCluster)}


def load(directory):
    """The server of a directory and the process that runs it."""
    try:
        with open(os.path.join(directory, "server.json"), encoding="utf-8") as file:
            saved = json.load(file)
    except FileNotFoundError:
        raise Failed(f"{directory} has no server; start one") from None
    server = KINDS[saved["kind"]](directory, saved["port"], saved["settings"], saved["disk"],
                                  saved["host"])
    return server, saved["pid"]
