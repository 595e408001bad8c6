"""Private servers for one test: PostgreSQL as an operator sets it up, and Redis."""

import contextlib
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
from pathlib import Path

from programs import MASTER_KEY, PROGRAM_TIMEOUT, Installation, environment, eventually, program

# PostgreSQL refuses to run as root.
NOBODY = pwd.getpwnam("nobody")
UNPRIVILEGED = {"user": NOBODY.pw_uid, "group": NOBODY.pw_gid, "extra_groups": []} if os.geteuid() == 0 else {}
# The roles of `roles.sql`. The owner makes the schema.
OWNER, SERVE, OPERATE = "penstock_owner", "penstock_serve", "penstock_operate"


def installed(name):
    """A program on `PATH` or in Debian's folders of PostgreSQL, the newest version first."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda folder: int(folder.parent.name), reverse=True)
    found = shutil.which(name, path=os.pathsep.join([os.environ["PATH"], *map(str, folders)]))
    assert found, f"{name} is not installed"
    return found


def free_port():
    """A port for a server that cannot choose one, or that keeps its address over a restart.

    It is below the ports that systems give to connections, so that none takes it before the server does.
    """
    while True:
        port = 10_000 + secrets.randbelow(20_000)
        with socket.socket() as listener, contextlib.suppress(OSError):
            listener.bind(("127.0.0.1", port))
            return port


class Server:
    """A program that runs in a folder of its own until the block ends."""

    def __init__(self, *command, folder, stop=signal.SIGTERM):
        self.command, self.folder, self.how = command, folder, stop
        self.process = None
        self.start()

    def start(self):
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                self.command,
                cwd=self.folder,
                env=environment({}),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                **UNPRIVILEGED,
            )

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(self.how)
        self.process.wait(PROGRAM_TIMEOUT)

    def await_answer(self, command, what):
        """Waits until the command succeeds. A server that has ended never answers."""

        def answers():
            assert self.process.poll() is None, f"the server ended with {self.process.returncode}: {self.log()}"
            return subprocess.run(command, check=False).returncode == 0

        eventually(answers, what)

    def log(self):
        return (self.folder / "log").read_text(errors="replace")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


@contextlib.contextmanager
def own_folder():
    """A temporary folder of the user that runs the servers."""
    with tempfile.TemporaryDirectory(prefix="penstock-servers-") as name:
        if UNPRIVILEGED:
            os.chown(name, NOBODY.pw_uid, NOBODY.pw_gid)
        yield Path(name)


class Postgres(Server):
    """A cluster with a superuser. It flushes nothing, so that no duration depends on the machine's disk."""

    def __init__(self, folder):
        self.port, self.password = free_port(), secrets.token_hex(16)
        (folder / "password").write_text(self.password)
        words = ["--pgdata=data", "--username=postgres", "--encoding=UTF8", "--locale=C.UTF-8", "--pwfile=password"]
        subprocess.run(
            [installed("initdb"), *words, "--auth=password", "--no-sync"],
            cwd=folder,
            check=True,
            stdout=subprocess.DEVNULL,
            **UNPRIVILEGED,
        )
        settings = ["listen_addresses=127.0.0.1", f"port={self.port}", "unix_socket_directories=", "fsync=off"]
        words = [word for setting in settings for word in ("-c", setting)]
        super().__init__(installed("postgres"), "-D", "data", *words, folder=folder, stop=signal.SIGINT)

    def start(self):
        super().start()
        ready = [installed("pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(self.port)]
        self.await_answer(ready, "PostgreSQL is ready")

    def url(self, database, role="postgres"):
        return f"postgres://{role}:{self.password}@127.0.0.1:{self.port}/{database}"

    def sql(self, text, database="postgres", role="postgres"):
        """The rows of a statement, one text each."""
        return psql(self.url(database, role), "-c", text)


def psql(url, *words):
    command = [installed("psql"), "-qXAt", "-v", "ON_ERROR_STOP=1", url, *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PROGRAM_TIMEOUT, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


class Standby(Server):
    """A hot standby of a server, by streaming replication."""

    def __init__(self, folder, primary):
        self.port = free_port()
        words = ["--pgdata=data", "--write-recovery-conf", "--checkpoint=fast", "--no-sync", f"--dbname={primary.url('postgres')}"]
        subprocess.run([installed("pg_basebackup"), *words], cwd=folder, check=True, stdout=subprocess.DEVNULL, **UNPRIVILEGED)
        settings = ["-c", "listen_addresses=127.0.0.1", "-c", f"port={self.port}", "-c", "unix_socket_directories="]
        super().__init__(installed("postgres"), "-D", "data", *settings, folder=folder, stop=signal.SIGINT)
        url = primary.url("postgres").replace(f":{primary.port}/", f":{self.port}/")
        ready = [installed("pg_isready"), "-q", "-d", url]
        self.await_answer(ready, "the standby is ready")
        assert psql(url, "-c", "SELECT pg_is_in_recovery()") == ["t"]


class Redis(Server):
    """A Redis without a disk."""

    def __init__(self, folder):
        self.port = free_port()
        words = ["--bind", "127.0.0.1", "--port", str(self.port), "--save", "", "--appendonly", "no"]
        super().__init__(installed("redis-server"), *words, folder=folder)
        eventually(lambda: "Ready to accept connections" in self.log(), "Redis is ready")

    @property
    def url(self):
        return f"redis://127.0.0.1:{self.port}/0"


class OnServer(Installation):
    """A database on a server, set up as the operating guide says: services and `penstock` have a role each."""

    def __init__(self, folder, postgres, **settings):
        self.postgres, self.name = postgres, f"penstock_{secrets.token_hex(6)}"
        for role in (OWNER, SERVE, OPERATE):
            postgres.sql(f"DO $$ BEGIN CREATE ROLE {role}; EXCEPTION WHEN duplicate_object THEN NULL; END $$")
            postgres.sql(f"ALTER ROLE {role} LOGIN PASSWORD '{postgres.password}'")
        postgres.sql(f"CREATE DATABASE {self.name} OWNER {OWNER}")
        url = postgres.url(self.name, SERVE)
        super().__init__(folder, **{"PENSTOCK_DATABASE_URL": url, "PENSTOCK_MASTER_KEY": MASTER_KEY, **settings})
        done = self.pools_service("migrate", PENSTOCK_DATABASE_URL=postgres.url(self.name, OWNER))
        assert done.code == 0, done.out + done.err
        psql(postgres.url(self.name), "-f", Path(program("DEPLOY_DIR"), "postgres", "roles.sql"))

    def penstock(self, *words, **settings):
        url = self.postgres.url(self.name, OPERATE)
        return super().penstock(*words, **{"PENSTOCK_DATABASE_URL": url, **settings})

    def change(self, sql):
        self.postgres.sql(sql, self.name)
