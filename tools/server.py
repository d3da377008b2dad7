#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Real servers for tests, benchmarks and people: each on a private port and in a private directory,
on the loopback address, as an unprivileged user when we are root.

    tools/server.py start postgresql|mariadb|redis|redis-cluster|kafka|rabbitmq|mosquitto
                    --dir DIR [--port N] [--host ADDRESS] [--set NAME=VALUE ...] [--disk SIZE] [--tls]
                    [--locale NAME]
    tools/server.py stop|kill|restart|remove|status --dir DIR
    tools/server.py freeze|thaw --dir DIR
    tools/server.py fill|free --dir DIR
    tools/server.py url --dir DIR

`start` makes the data directory when it is new, waits until the server answers and prints its URL
for --store. The server listens on one address, 127.0.0.1 or --host (for example ::1). `kill` is
SIGKILL to all its processes; `start` after it recovers; `remove` also takes the directory away.
`freeze` stops all its processes as they are (SIGSTOP): connections stay open and nothing answers,
until `thaw`. With --disk (root only) the data are on a file system of that
size, which `fill` fills to the last byte and `free` relieves. With --tls the server has a
certificate that DIR/tls/ca.pem vouches for, and DIR/tls/other_ca.pem does not; Kafka then also asks
for the user and the password of the URL (SCRAM or PLAIN). DIR/ctl is the rabbitmqctl of a server of
RabbitMQ. With --locale the server runs under that
locale, which is compiled for it alone (Debian's package "locales" has the sources). Exit codes: 0
done, 1 failed, 77 this machine does not have the server.
"""
import argparse
import errno
import glob
import hashlib
import json
import os
import pwd
import shlex
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import time

MISSING = 77
ANSWER_SECONDS = 60
LOOPBACK = "127.0.0.1"
USER, PASSWORD, DATABASE = "once", "once-test-secret", "once"


class Failed(Exception):
    pass


class Missing(Exception):
    pass


def program(name, *folders):
    """The path of a program, also where Debian hides it."""
    for folder in folders:
        found = sorted(glob.glob(os.path.join(folder, name)))
        if found:
            return found[-1]
    found = shutil.which(name)
    if not found:
        raise Missing(f"{name} is not installed")
    return found


def free_port(host=LOOPBACK):
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.socket(family) as probe:
            probe.bind((host, 0))
            return probe.getsockname()[1]
    except OSError as failure:
        raise Missing(f"the address {host} ({failure.strerror})") from None


def unprivileged():
    """Servers refuse to run as root, or should."""
    if os.geteuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
    raise Failed("there is no unprivileged user to run a server as")


def run(command, **options):
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    if done.returncode != 0:
        raise Failed(f"{command[0]}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


class Server:
    """One server; the subclasses know how it is made, started and asked."""

    stop_signal = signal.SIGTERM

    def __init__(self, directory, port, settings, disk=None, host=LOOPBACK):
        self.directory, self.port, self.settings, self.disk = directory, port, settings, disk
        self.host = host
        self.mounted = os.path.join(directory, "disk")
        self.ballast = os.path.join(self.mounted, "ballast")
        self.data = os.path.join(self.mounted if disk else directory, "data")
        self.log = os.path.join(directory, "log")

    def make(self):
        raise AssertionError("each kind of server says this itself")

    def command(self):
        raise AssertionError("each kind of server says this itself")

    def answers(self):
        raise AssertionError("each kind of server says this itself")

    @classmethod
    def tls_settings(cls, key, certificate):
        """With which it encrypts its connections."""
        raise Missing(f"{cls.name} with certificates")

    def prepare(self):
        """What is done once, when the server answers for the first time."""

    def ended(self):
        """What is left to do when its processes are gone."""

    def environment(self):
        """That of its processes; None is ours."""
        return environment_with_locale(self.directory)

    def at(self, port):
        """HOST:PORT, as URLs have it."""
        return f"[{self.host}]:{port}" if ":" in self.host else f"{self.host}:{port}"

    def url(self):
        return f"{self.name}://{USER}:{PASSWORD}@{self.at(self.port)}/{DATABASE}"

    def start(self):
        new = not os.path.isdir(self.data)
        account = unprivileged()
        os.makedirs(self.directory, exist_ok=True)
        if account:
            os.chown(self.directory, account["user"], account["group"])
        if new:
            if self.disk:
                self.mount(account)
            self.make(account)
        with open(self.log, "ab") as log:
            process = subprocess.Popen(self.command(), stdin=subprocess.DEVNULL, stdout=log,
                                       stderr=log, cwd=self.directory, start_new_session=True,
                                       env=self.environment(), **account)
        self.save(process.pid)
        deadline = time.monotonic() + ANSWER_SECONDS
        while not self.answers():
            if process.poll() is not None:
                raise Failed(f"the server ended with {process.returncode}; see {self.log}")
            if time.monotonic() > deadline:
                raise Failed(f"the server does not answer; see {self.log}")
            time.sleep(0.05)
        if new:
            self.prepare()

    def save(self, pid):
        with open(os.path.join(self.directory, "server.json"), "w", encoding="utf-8") as file:
            json.dump({"kind": self.name, "pid": pid, "host": self.host, "port": self.port,
                       "settings": self.settings, "disk": self.disk}, file)

    def mount(self, account):
        os.makedirs(self.mounted, exist_ok=True)
        try:
            run(["mount", "-t", "tmpfs", "-o", f"size={self.disk},mode=755", "tmpfs", self.mounted])
        except (Failed, FileNotFoundError) as failure:
            raise Missing(f"a file system of its own for {self.name} ({failure})") from None
        if account:
            os.chown(self.mounted, account["user"], account["group"])

    def fill(self):
        """Takes all space that is left, also what becomes free meanwhile."""
        with open(self.ballast, "ab", buffering=0) as ballast:
            for piece in (1 << 20, 1 << 12):
                try:
                    while True:
                        ballast.write(bytes(piece))
                except OSError as failure:
                    if failure.errno != errno.ENOSPC:
                        raise

    def free(self):
        if os.path.exists(self.ballast):
            os.remove(self.ballast)

    def remove(self):
        if self.disk:
            # The kernel may hold files of a killed process a little longer: gone when it lets go.
            run(["umount", "--lazy", self.mounted])
        shutil.rmtree(self.directory)


def make_locale(directory, name):
    """A locale that only this server has."""
    language, _, charset = name.partition(".")
    folder = os.path.join(directory, "locale")
    os.makedirs(folder)
    try:
        run([program("localedef"), "-i", language, "-f", charset or "UTF-8",
             os.path.join(folder, name)])
    except Failed as failure:
        raise Missing(f"the locale {name} ({failure})") from None


def environment_with_locale(directory):
    """Ours with the locale that was made for a server; None without one."""
    folder = os.path.join(directory, "locale")
    if not os.path.isdir(folder):
        return None
    return dict(os.environ, LOCPATH=folder, LC_ALL=os.listdir(folder)[0])


def make_certificates(directory):
    """A certificate for the loopback address, the authority that signed it, and another one."""
    folder = os.path.join(directory, "tls")
    os.makedirs(folder)
    account = unprivileged()

    def make(name, *more):
        key, certificate = (os.path.join(folder, name + end) for end in (".key", ".pem"))
        run([program("openssl"), "req", "-x509", "-newkey", "ec", "-pkeyopt",
             "ec_paramgen_curve:prime256v1", "-nodes", "-days", "30", "-subj", f"/CN=once {name}",
             "-keyout", key, "-out", certificate, *more])
        os.chmod(key, 0o600)
        if account:
            os.chown(key, account["user"], account["group"])
        return key, certificate

    authority_key, authority = make("ca")
    make("other_ca")
    return make("server", "-CA", authority, "-CAkey", authority_key, "-addext",
                "subjectAltName=IP:127.0.0.1")


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


class Kafka(Server):
    """One process that is broker and controller (KRaft), from the jars that tools/kafka names."""

    scram = ("SCRAM-SHA-256", "SCRAM-SHA-512")

    name = "kafka"
    pom = os.path.join(os.path.dirname(os.path.realpath(__file__)), "kafka", "pom.xml")

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

    def jars(self):
        """Where the jars are; fetched when this version of the list is new here."""
        with open(self.pom, "rb") as file:
            version = hashlib.sha256(file.read()).hexdigest()[:12]
        cache = f"/var/tmp/once-jars-{os.geteuid()}"
        os.makedirs(cache, mode=0o755, exist_ok=True)
        if os.stat(cache).st_uid != os.geteuid():
            raise Failed(f"{cache} belongs to somebody else; remove it")
        kept = os.path.join(cache, f"kafka-{version}")
        if not os.path.isdir(kept):
            with tempfile.TemporaryDirectory(dir=cache) as fetched:
                lib = os.path.join(fetched, "lib")
                run([program("mvn"), "-q", "-B", "-f", self.pom, "dependency:copy-dependencies",
                     f"-DoutputDirectory={lib}", "-DincludeScope=runtime"])
                os.chmod(lib, 0o755)
                try:
                    os.rename(lib, kept)
                except OSError:
                    if not os.path.isdir(kept):  # else another has just done the same
                        raise
        return os.path.join(kept, "*")

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
                    connection = context.wrap_socket(connection)
                connection.sendall(b"AMQP\0\0\x09\x01")
                return connection.recv(1) == b"\1"
        except OSError:
            return False


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


KINDS = {kind.name: kind
         for kind in (Kafka, Mosquitto, PostgreSql, MariaDb, Redis, RedisCluster, RabbitMq)}


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


def status_of(pid):
    """State and parent of a process; None when there is none."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return fields[0], int(fields[1])
    except (FileNotFoundError, ProcessLookupError):
        return None


def is_alive(pid):
    status = status_of(pid)
    return status is not None and status[0] != "Z"


def children_of(pid):
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    return [child for child in pids if (status_of(child) or ("", 0))[1] == pid]


def send(pid, how):
    try:
        os.kill(pid, how)
    except ProcessLookupError:
        pass


def end(server, pid, how):
    """Ends the server and its children, and waits until they are gone."""
    if not is_alive(pid):
        return
    family = [pid, *children_of(pid)]
    for member in family if how == signal.SIGKILL else [pid]:
        send(member, how)
    deadline = time.monotonic() + ANSWER_SECONDS
    while any(is_alive(member) for member in family):
        # Helpers of a server that has ended are of no use to anybody.
        if time.monotonic() > deadline or not is_alive(pid):
            for member in family:
                send(member, signal.SIGKILL)
        time.sleep(0.02)
    server.ended()


def start(options):
    if os.path.exists(os.path.join(options.dir, "server.json")):
        server, pid = load(options.dir)
        if is_alive(pid):
            raise Failed(f"{options.dir}: the server is running already, process {pid}")
        server.ended()  # perhaps by itself
    else:
        settings = dict(setting.split("=", 1) for setting in options.set)
        kind = KINDS[options.kind]
        if options.tls:
            settings.update(kind.tls_settings(*make_certificates(options.dir)))
        if options.locale:
            make_locale(options.dir, options.locale)
        port = options.port or free_port(options.host)
        server = kind(options.dir, port, settings, options.disk, options.host)
    server.start()
    print(server.url())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("action", choices=["start", "stop", "kill", "restart", "remove", "status",
                                           "freeze", "thaw", "fill", "free", "url"])
    parser.add_argument("kind", nargs="?", choices=sorted(KINDS))
    parser.add_argument("--dir", required=True)
    parser.add_argument("--host", default=LOOPBACK, metavar="ADDRESS")
    parser.add_argument("--port", type=int)
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--disk", metavar="SIZE")
    parser.add_argument("--tls", action="store_true")
    parser.add_argument("--locale", metavar="NAME")
    options = parser.parse_args()
    options.dir = os.path.abspath(options.dir)
    if options.action == "start" and not options.kind:
        known = os.path.exists(os.path.join(options.dir, "server.json"))
        if not known:
            parser.error("start what? " + ", ".join(sorted(KINDS)))
    try:
        if options.action == "start":
            start(options)
            return 0
        server, pid = load(options.dir)
        if options.action == "url":
            print(server.url())
        elif options.action == "status":
            print("running" if is_alive(pid) else "stopped")
        elif options.action in ("freeze", "thaw"):
            for member in [pid, *children_of(pid)]:
                send(member, signal.SIGSTOP if options.action == "freeze" else signal.SIGCONT)
        elif options.action == "fill":
            server.fill()
        elif options.action == "free":
            server.free()
        elif options.action == "remove":
            end(server, pid, signal.SIGKILL)
            server.remove()
        else:
            end(server, pid, signal.SIGKILL if options.action == "kill" else server.stop_signal)
            if options.action == "restart":
                server.start()
                print(server.url())
        return 0
    except Missing as missing:
        print(f"skipped: {missing}", file=sys.stderr)
        return MISSING
    except Failed as failure:
        print(f"server: {failure}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
