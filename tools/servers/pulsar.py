# SPDX-License-Identifier: Apache-2.0
"""Pulsar, one broker."""
import base64
import hashlib
import hmac
import json
import os
import shutil
import urllib.request

from .java import JavaServer
from .server import USER, free_port, program


class Pulsar(JavaServer):
    """Broker, bookie and metadata in one process ("standalone"), from the jars that tools/pulsar
    names. The web port is in the URL; with --tls its token, too."""

    name = "pulsar"

    # What Netty, the bookie and the JVM's statistics are refused otherwise.
    opened = ("java.base/java.nio", "java.base/jdk.internal.misc", "java.base/java.io",
              "java.base/java.util.zip", "java.base/java.lang", "java.base/sun.net",
              "java.base/jdk.internal.platform", "java.management/sun.management",
              "jdk.management/com.sun.management.internal")

    @staticmethod
    def token(key, user):
        """A JSON web token (HS256)."""
        def part(data):
            return base64.urlsafe_b64encode(data).rstrip(b"=")
        text = part(b'{"alg":"HS256"}') + b"." + part(json.dumps({"sub": user}).encode())
        signature = hmac.new(key, text, hashlib.sha256).digest()
        return (text + b"." + part(signature)).decode()

    @classmethod
    def tls_settings(cls, key, certificate):
        secret = os.path.join(os.path.dirname(key), "token.key")
        with open(secret, "wb") as file:
            file.write(os.urandom(32))
        shutil.chown(secret, os.stat(key).st_uid, os.stat(key).st_gid)
        os.chmod(secret, 0o600)
        with open(secret, "rb") as file:
            token = cls.token(file.read(), USER)
        plugins = "org.apache.pulsar"
        return {"tlsKeyFilePath": key, "tlsCertificateFilePath": certificate,
                "authenticationEnabled": "true", "authorizationEnabled": "true",
                "authenticationProviders":
                f"{plugins}.broker.authentication.AuthenticationProviderToken",
                "tokenSecretKey": f"file://{secret}", "superUserRoles": USER,
                "brokerClientAuthenticationPlugin":
                f"{plugins}.client.impl.auth.AuthenticationToken",
                "brokerClientAuthenticationParameters": f"token:{token}"}

    def configuration(self):
        return os.path.join(self.directory, "standalone.conf")

    def configured(self, name):
        with open(self.configuration(), encoding="utf-8") as file:
            for line in file:
                if line.startswith(name + "="):
                    return line.strip().split("=", 1)[1]
        return ""

    def url(self):
        token = self.configured("brokerClientAuthenticationParameters").partition(":")[2]
        scheme, user = ("pulsar+ssl", f"token:{token}@") if token else ("pulsar", "")
        web = f"http://{self.at(int(self.configured('webServicePort')))}"
        return f"{scheme}://{user}{self.at(self.port)}?web={web}"

    def make(self, account):
        program("java")
        os.makedirs(self.data)
        encrypts = "tlsKeyFilePath" in self.settings
        settings = {
            "brokerServicePort": free_port(self.host) if encrypts else self.port,
            "webServicePort": free_port(self.host), "bookiePort": free_port(self.host),
            "bindAddress": self.host, "advertisedAddress": self.host, "clusterName": "standalone",
            "metadataStoreUrl": "", "configurationMetadataStoreUrl": "",
            # Otherwise the bookie ignores its port and listens on every address.
            "allowEphemeralPorts": "true", "listeningInterface": "lo", "allowLoopback": "true",
            "managedLedgerDefaultEnsembleSize": "1", "managedLedgerDefaultWriteQuorum": "1",
            "managedLedgerDefaultAckQuorum": "1", "managedLedgerCacheSizeMB": "32",
            # Otherwise acks that were confirmed are forgotten when the broker is killed.
            "managedLedgerDefaultMarkDeleteRateLimit": "0",
            "acknowledgmentAtBatchIndexLevelEnabled": "true",
            # Another consumer takes over at once.
            "activeConsumerFailoverDelayTimeMillis": "0",
            "dbStorage_writeCacheMaxSizeMb": "32", "dbStorage_readAheadCacheMaxSizeMb": "16",
            "numIOThreads": "2", "numHttpServerThreads": "8",
            "brokerDeduplicationEnabled": "true", "systemTopicEnabled": "false",
            "topicLevelPoliciesEnabled": "false", "transactionCoordinatorEnabled": "false",
            "allowAutoTopicCreation": "false", "brokerDeleteInactiveTopicsEnabled": "false",
            "defaultRetentionTimeInMinutes": "-1", "defaultRetentionSizeInMB": "-1",
            "loadBalancerEnabled": "false", "webSocketServiceEnabled": "false",
            **({"brokerServicePortTls": self.port} if encrypts else {}), **self.settings}
        with open(self.configuration(), "w", encoding="utf-8") as file:
            file.writelines(f"{name}={value}\n" for name, value in settings.items())
        os.chmod(self.configuration(), 0o600)  # it has the token
        if account:
            for made in (self.data, self.configuration()):
                os.chown(made, account["user"], account["group"])

    def command(self):
        opened = [part for name in self.opened for part in ("--add-opens", f"{name}=ALL-UNNAMED")]
        return [program("java"), "-Xmx512m", "-XX:MaxDirectMemorySize=768m", "-XX:+UseSerialGC",
                "-XX:TieredStopAtLevel=1", "-Dio.netty.tryReflectionSetAccessible=true", *opened,
                "-cp", self.jars(), "org.apache.pulsar.PulsarStandaloneStarter",
                "-c", self.configuration(), "-nfw", "-nss", "-a", self.host,
                "--metadata-dir", os.path.join(self.data, "metadata"),
                "--bookkeeper-dir", os.path.join(self.data, "bookkeeper"), "--num-bookies", "1",
                "--bookkeeper-port", self.configured("bookiePort")]

    def ask(self, path):
        """The answer of its admin API; nothing while it has none."""
        request = urllib.request.Request(
            f"http://{self.at(int(self.configured('webServicePort')))}/admin/v2/{path}")
        token = self.configured("brokerClientAuthenticationParameters").partition(":")[2]
        if token:
            request.add_header("Authorization", "Bearer " + token)
        try:
            with urllib.request.urlopen(request, timeout=15) as answer:
                return answer.read()
        except OSError:
            return b""

    def answers(self):
        """Its own check writes a message and reads it; the usual namespace is made after that."""
        return (self.ask("brokers/health") == b"ok"
                and b'"public/default"' in self.ask("namespaces/public"))
