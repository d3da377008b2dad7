#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The three families of duplicates, provoked for real: `once produce` sends to a broker, `once run`
takes the messages into a store, and both, and the broker, are killed on the way.

    families.py ONCE BROKER STORE [FAMILY ...]

BROKER is kafka, file, rabbitmq, mqtt or pulsar; STORE is sqlite, postgresql or mariadb. The books
are checked id by id: nothing lost, nothing twice, and in the order of the partition where the
broker has one. Exit codes: 0 it holds, 1 it does not, 77 this machine does not have the servers.
"""
import contextlib
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.realpath(__file__))
SERVER = os.path.join(HERE, "..", "..", "tools", "server.py")
PARTITIONS = 3
WAIT_SECONDS = 120


class Skipped(Exception):
    pass


class Broken(Exception):
    pass


def run(command, **options):
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    if done.returncode == 77:
        raise Skipped(done.stderr.strip())
    if done.returncode != 0:
        raise Broken(f"{' '.join(command)}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


class Server:
    """A server of tools/server.py in a directory of its own."""

    def __init__(self, kind, directory, *settings):
        self.directory = directory
        more = [word for setting in settings for word in ("--set", setting)]
        self.url = run([SERVER, "start", kind, "--dir", directory, *more]).strip()

    def kill(self):
        run([SERVER, "kill", "--dir", self.directory])

    def stop(self):
        run([SERVER, "stop", "--dir", self.directory])

    def start(self):
        run([SERVER, "start", "--dir", self.directory])

    def end(self):
        with contextlib.suppress(Broken):
            run([SERVER, "kill", "--dir", self.directory])


class SqliteStore:
    def __init__(self, directory):
        self.path = os.path.join(directory, "shop.db")
        self.url = "sqlite:" + self.path
        self.execute("CREATE TABLE effect (number INTEGER PRIMARY KEY, id TEXT, "
                     "source_partition TEXT, at_offset INTEGER)")

    def execute(self, statement):
        with contextlib.closing(sqlite3.connect(self.path, timeout=30)) as database:
            rows = database.execute(statement).fetchall()
            database.commit()
            return [tuple(str(field) for field in row) for row in rows]

    def end(self):
        pass


class ServerStore:
    """A database on a server, asked through its own command line client."""

    def __init__(self, kind, directory):
        self.server = Server(kind, os.path.join(directory, kind))
        self.url = self.server.url
        self.execute(f"CREATE TABLE effect ({self.counter}, id TEXT, source_partition TEXT, "
                     "at_offset BIGINT)")

    def execute(self, statement):
        text = run(self.client(statement), env=dict(os.environ, **self.environment))
        return [tuple(line.split("\t")) for line in text.splitlines() if line]

    def end(self):
        self.server.end()


class PostgreSqlStore(ServerStore):
    counter = "number BIGSERIAL PRIMARY KEY"
    environment = {}

    def client(self, statement):
        return ["psql", self.url, "-AtqF", "\t", "-c", statement]


class MariaDbStore(ServerStore):
    counter = "number BIGINT PRIMARY KEY AUTO_INCREMENT"
    environment = {"MYSQL_PWD": "once-test-secret"}

    def client(self, statement):
        port = self.url.rsplit(":", 1)[1].split("/")[0]
        return ["mariadb", "--no-defaults", "-h", "127.0.0.1", "-P", port, "-u", "once", "-Nse",
                statement, "once"]


STORES = {
    "sqlite": SqliteStore,
    "postgresql": lambda directory: PostgreSqlStore("postgresql", directory),
    "mariadb": lambda directory: MariaDbStore("mariadb", directory),
}


class Broker:
    shared = True      # several consumers read a topic at once
    ordered = True     # the messages of a partition come in the order of their offsets
    recognises = True  # by their stamps, messages that it was sent before
    kills = (1, 2)     # the turns of "moved" in which it dies, too

    def prepare(self, source):
        """What is done once, before anything is sent."""


class KafkaBroker(Broker):
    name = "kafka"

    def __init__(self, once, directory):
        self.once = once
        self.server = Server("kafka", os.path.join(directory, "kafka"))

    def new_topic(self, name):
        url = f"{self.server.url}/{name}"
        run([self.once, "topic", "create", url, "--partitions", str(PARTITIONS)])
        return url, f"{url}?group={name}&session.timeout.ms=1500&heartbeat.interval.ms=300"

    def kill(self):
        self.server.kill()

    def start(self):
        self.server.start()

    def end(self):
        self.server.end()


class FileBroker(Broker):
    """The embedded log. It has no server that could be killed: its writer is the producer."""

    name = "file"
    shared = False

    def __init__(self, once, directory):
        self.once, self.directory = once, os.path.join(directory, "log")

    def new_topic(self, name):
        url = f"file:{self.directory}/{name}"
        run([self.once, "topic", "create", url, "--partitions", str(PARTITIONS)])
        return url, url

    def kill(self):
        pass

    def start(self):
        pass

    def end(self):
        pass


class RabbitMqBroker(Broker):
    name = "rabbitmq"
    ordered = False
    recognises = False

    def __init__(self, once, directory):
        self.once = once
        self.server = Server("rabbitmq", os.path.join(directory, "rabbitmq"))

    def new_topic(self, name):
        url = f"{self.server.url}?queue={name}"
        run([self.once, "topic", "create", url])
        return url, f"{url}&prefetch=200"

    def kill(self):
        self.server.kill()

    def start(self):
        self.server.start()

    def end(self):
        self.server.end()


class MqttBroker(Broker):
    """Each consumer has a session under its name. What Mosquitto confirms is not on disk at once:
    killed, it loses messages that nobody else has (mqtt_break_test), so here it is ended."""

    name = "mqtt"
    ordered = False
    recognises = False

    def __init__(self, once, directory):
        self.once, self.directory = once, directory
        # It writes all that it has when it ends, and not after each change: that takes minutes.
        self.server = Server("mosquitto", os.path.join(directory, "mosquitto"),
                             "autosave_on_changes=false", "autosave_interval=0")

    def new_topic(self, name):
        url = f"{self.server.url}/{name}"
        return url, f"{url}?client={name}-${{CONSUMER}}&share=workers&prefetch=500"

    def prepare(self, source):
        """The broker keeps messages for sessions: the first consumer's has to be there."""
        unused = f"file:{self.directory}/unused"
        run([self.once, "topic", "create", unused])
        run([self.once, "bridge", source.replace("${CONSUMER}", "0"), unused, "--id", "carried",
             "--state", f"sqlite:{self.directory}/unused.db"])

    def kill(self):
        self.server.stop()

    def start(self):
        self.server.start()

    def end(self):
        self.server.end()


class PulsarBroker(Broker):
    name = "pulsar"
    kills = (1,)       # it takes its time to start again

    def __init__(self, once, directory):
        self.once = once
        self.server = Server("pulsar", os.path.join(directory, "pulsar"))

    def new_topic(self, name):
        brokers, _, web = self.server.url.partition("?")
        url = f"{brokers}/{name}"
        run([self.once, "topic", "create", f"{url}?{web}", "--partitions", str(PARTITIONS)])
        return url, f"{url}?subscription={name}"

    def kill(self):
        self.server.kill()

    def start(self):
        self.server.start()

    def end(self):
        self.server.end()


BROKERS = {broker.name: broker
           for broker in (KafkaBroker, FileBroker, RabbitMqBroker, MqttBroker, PulsarBroker)}

PIPELINE = '''
scope = "families {name}"

[source]
url = "{source}"
id = "carried"

[store]
url = "{store}"

[run]
batch = {batch}
retention = "forever"

[retry]
attempts = 1000

[values]
id = {{ id = true }}
source_partition = {{ partition = true }}
at_offset = {{ offset = true }}

[[do]]
sql = """
INSERT INTO effect (id, source_partition, at_offset)
VALUES (:id, :source_partition, :at_offset)"""
rows = 1
'''


class World:
    """A broker, a store and the processes between them."""

    def __init__(self, once, broker, store):
        self.once = once
        self.directory = tempfile.mkdtemp(prefix="once-families-")
        os.chmod(self.directory, 0o755)
        self.parts = []
        self.processes = []
        self.consumers = {}
        self.random = random.Random(20)
        self.broker = self.keep(BROKERS[broker](once, self.directory))
        self.store = self.keep(STORES[store](self.directory))

    def keep(self, part):
        self.parts.append(part)
        return part

    def end(self):
        for process in self.processes:
            if process.poll() is None:
                process.kill()
                process.wait()
        for part in self.parts:
            part.end()
        shutil.rmtree(self.directory, ignore_errors=True)

    def topic(self, name):
        self.name = name
        self.sink, self.source = self.broker.new_topic(name)
        self.broker.prepare(self.source)
        self.store.execute("DELETE FROM effect")
        self.pipeline = os.path.join(self.directory, name + ".toml")
        with open(self.pipeline, "w", encoding="utf-8") as file:
            file.write(PIPELINE.format(name=name, source=self.source, store=self.store.url,
                                       batch=50))

    def messages(self, count):
        path = os.path.join(self.directory, self.name + ".jsonl")
        with open(path, "w", encoding="utf-8") as file:
            for number in range(count):
                file.write(json.dumps({"id": f"order {number:06}", "key": f"customer {number % 17}",
                                       "body": "{}"}) + "\n")
        return path

    def start(self, command, **options):
        log = open(os.path.join(self.directory, "talk"), "ab")  # closed with the process
        process = subprocess.Popen([self.once, *command], stdout=log, stderr=log, **options)
        self.processes.append(process)
        return process

    def consumer(self):
        """Under the first name that no other has."""
        taken = {name for name, process in self.consumers.items() if process.poll() is None}
        name = next(str(number) for number in range(100) if str(number) not in taken)
        self.consumers[name] = self.start(["run", self.pipeline],
                                          env=dict(os.environ, CONSUMER=name))
        return self.consumers[name]

    def producer(self, path, name, replay=True):
        command = ["produce", self.sink, "--json"]
        if self.broker.recognises:
            command += ["--producer", name] + ["--replay"] * replay
        return self.start(command, stdin=open(path, "rb"))

    def send(self, path, name, tries=40):
        """Sends all of a file, however often it takes."""
        for _ in range(tries):
            process = self.producer(path, name)
            if process.wait(timeout=WAIT_SECONDS) == 0:
                return
            time.sleep(0.3)
        raise Broken("the producer does not get through: " + self.talk())

    def talk(self):
        with open(os.path.join(self.directory, "talk"), encoding="utf-8", errors="replace") as file:
            return file.read()[-2000:]

    def effects(self):
        return self.store.execute(
            "SELECT id, source_partition, at_offset FROM effect ORDER BY number")

    def count(self):
        try:
            return int(self.store.execute("SELECT count(*) FROM effect")[0][0])
        except (Broken, sqlite3.Error):
            return -1

    def wait_for(self, count):
        deadline = time.monotonic() + WAIT_SECONDS
        while self.count() < count:
            if time.monotonic() > deadline:
                raise Broken(f"{self.count()} of {count} effects after {WAIT_SECONDS} seconds: "
                             + self.talk())
            time.sleep(0.1)

    def settle(self, consumers, count):
        """Waits for all effects, and a little for those that must not come; then stops."""
        self.wait_for(count)
        time.sleep(1)
        for consumer in consumers:
            consumer.send_signal(signal.SIGTERM)
        for consumer in consumers:
            code = consumer.wait(timeout=60)
            if code != 0:
                raise Broken(f"a consumer ended with {code}: {self.talk()}")
        self.check(count)

    def check(self, count):
        """Loss, duplication, order; id by id."""
        seen, last = {}, {}
        for id_, partition, offset in self.effects():
            seen[id_] = seen.get(id_, 0) + 1
            if self.broker.ordered and int(offset) <= last.get(partition, -1):
                raise Broken(f"{id_} at {partition} {offset} took effect after {last[partition]}")
            last[partition] = int(offset)
        wanted = [f"order {number:06}" for number in range(count)]
        lost = [id_ for id_ in wanted if id_ not in seen]
        doubled = [id_ for id_, times in seen.items() if times > 1]
        strange = sorted(set(seen) - set(wanted))
        if lost or doubled or strange:
            raise Broken(f"lost {lost[:5]} ({len(lost)}), doubled {doubled[:5]} ({len(doubled)}), "
                         f"strange {strange[:5]}")

    def in_topic(self):
        text = run([self.once, "consume", self.sink, "-o", "jsonl"])
        return [json.loads(line)["id"] for line in text.splitlines()]


def sent_twice(world):
    """(a) On send: a producer is killed and restarted under its name; the same orders also come
    from another producer, whose messages are new to the broker."""
    world.topic("sent")
    path = world.messages(3000)
    consumers = [world.consumer()]
    for _ in range(4):
        producer = world.producer(path, "shop")
        time.sleep(0.2 + world.random.random() * 1.3)
        producer.kill()
        producer.wait()
    world.send(path, "shop")
    if world.broker.recognises:
        ids = world.in_topic()
        if sorted(ids) != [f"order {number:06}" for number in range(3000)]:
            raise Broken(f"the topic has {len(ids)} messages with {len(set(ids))} ids, not 3000")
    world.send(path, "shop after a move")
    if world.broker.recognises and len(world.in_topic()) != 6000:
        raise Broken("the second producer's messages are not in the topic")
    world.wait_for(3000)
    time.sleep(2)
    world.settle(consumers, 3000)


def delivered_twice(world):
    """(b) On delivery: consumers die with effects committed and acks not sent."""
    count = 20000
    world.topic("delivered")
    path = world.messages(count)
    world.send(path, "shop")
    for _ in range(4):
        consumer = world.consumer()
        before = world.count()
        deadline = time.monotonic() + 15
        while before < count and world.count() <= before and time.monotonic() < deadline:
            time.sleep(0.02)
        time.sleep(world.random.random() * 0.1)
        consumer.kill()
        consumer.wait()
    world.settle([world.consumer()], count)


def moved(world):
    """(c) Rebalance: consumers come, go and die, the broker dies too, all under load."""
    world.topic("moved")
    count = 4000
    path = world.messages(count)
    consumers = [world.consumer()]
    producer = world.producer(path, "shop")
    if world.broker.shared:
        consumers.append(world.consumer())
    for turn in range(4):
        time.sleep(1 + world.random.random())
        victim = consumers.pop(0)
        (victim.kill if turn % 2 else victim.terminate)()
        victim.wait()
        if turn in world.broker.kills:
            world.broker.kill()
            time.sleep(0.3)
            world.broker.start()
        consumers.append(world.consumer())
    if producer.wait(timeout=WAIT_SECONDS) != 0:
        world.send(path, "shop")
    world.settle(consumers, count)


FAMILIES = {"sent": sent_twice, "delivered": delivered_twice, "moved": moved}


def main():
    once, broker, store, *chosen = sys.argv[1:]
    failures = 0
    world = None
    try:
        world = World(os.path.abspath(once), broker, store)
        for name in chosen or FAMILIES:
            started = time.monotonic()
            try:
                FAMILIES[name](world)
                verdict = "holds"
            except (Broken, subprocess.TimeoutExpired) as problem:
                failures += 1
                verdict = f"BROKEN: {problem}"
            print(f"{broker} {store} {name}: {verdict} ({time.monotonic() - started:.1f} s)",
                  flush=True)
    except Skipped as reason:
        print(f"skipped: {reason}", file=sys.stderr)
        return 77
    finally:
        if world:
            world.end()
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
