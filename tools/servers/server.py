# SPDX-License-Identifier: Apache-2.0
"""What all kinds of servers have in common."""
import errno
import glob
import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
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
    """Certificates for the loopback address and for a client, the authority that signed them, and
    another one."""
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
    # Test programs read its key, whoever they run as.
    os.chmod(make("client", "-CA", authority, "-CAkey", authority_key)[0], 0o644)
    return make("server", "-CA", authority, "-CAkey", authority_key, "-addext",
                "subjectAltName=IP:127.0.0.1")
