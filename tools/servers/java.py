# SPDX-License-Identifier: Apache-2.0
"""Servers that run on the JVM."""
import fcntl
import hashlib
import os
import tempfile

from .server import Failed, Server, program, run


class JavaServer(Server):
    """A server from the jars that a folder of tools names."""

    @classmethod
    def jars(cls):
        """Where the jars are; fetched when this version of the list is new here."""
        pom = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", cls.name,
                           "pom.xml")
        with open(pom, "rb") as file:
            version = hashlib.sha256(file.read()).hexdigest()[:12]
        cache = f"/var/tmp/once-jars-{os.geteuid()}"
        os.makedirs(cache, mode=0o755, exist_ok=True)
        if os.stat(cache).st_uid != os.geteuid():
            raise Failed(f"{cache} belongs to somebody else; remove it")
        kept = os.path.join(cache, f"{cls.name}-{version}")
        # One fetches, the others wait.
        with open(kept + ".lock", "w", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not os.path.isdir(kept):
                cls.fetch(pom, cache, kept)
        return os.path.join(kept, "*")

    @staticmethod
    def fetch(pom, cache, kept):
        with tempfile.TemporaryDirectory(dir=cache) as fetched:
            lib = os.path.join(fetched, "lib")
            run([program("mvn"), "-q", "-B", "-f", pom, "dependency:copy-dependencies",
                 f"-DoutputDirectory={lib}", "-DincludeScope=runtime"])
            os.chmod(lib, 0o755)
            os.rename(lib, kept)
