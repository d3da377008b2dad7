# SPDX-License-Identifier: Apache-2.0
"""Servers that run on the JVM."""
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
        if not os.path.isdir(kept):
            with tempfile.TemporaryDirectory(dir=cache) as fetched:
                lib = os.path.join(fetched, "lib")
                run([program("mvn"), "-q", "-B", "-f", pom, "dependency:copy-dependencies",
                     f"-DoutputDirectory={lib}", "-DincludeScope=runtime"])
                os.chmod(lib, 0o755)
                try:
                    os.rename(lib, kept)
                except OSError:
                    if not os.path.isdir(kept):  # else another has just done the same
                        raise
        return os.path.join(kept, "*")
