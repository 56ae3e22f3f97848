"""One side of a comparison: runs commands with or without the library preloaded, keeps their output, the time they take and the
largest resident memory of any of their processes, and leaves nothing running.
"""
import dataclasses
import hashlib
import os
import pwd
import re
import shutil
import signal
import subprocess
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TIMEOUT = 300  # seconds, for each command


class Failed(Exception):
    """The program did not do what it does under glibc."""


class Missing(Exception):
    """A command that the program needs is not installed."""


@dataclasses.dataclass
class Measured:
    output: str
    seconds: float
    peak: int  # bytes


def unprivileged_user():
    """Whom to run a server as that refuses to be run by root; None: as ourselves."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise Missing("no user but root")


class Side:
    """A directory to work in, an environment, and the processes started in it."""

    def __init__(self, directory, preload, log, full):
        os.makedirs(directory)
        self.directory, self.preload, self.full = directory, preload, full
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith(("HEAPWRIGHT_", "LD_"))}
        self.environment.update(LC_ALL="C.UTF-8", HOME=directory, TZ="UTC")
        if preload:
            self.environment["LD_PRELOAD"] = preload
        self.log = open(log, "wb")
        self.peak = 0
        self.running = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in list(self.running):
            self.stop(process, signal.SIGKILL)
        self.log.close()

    def need(self, *commands):
        for command in commands:
            if shutil.which(command) is None:
                raise Missing(f"{command} is not installed")

    def path(self, name):
        return os.path.join(self.directory, name)

    def input(self, name, **values):
        """Copies inputs/NAME into the directory, with @KEY@ replaced by values."""
        with open(os.path.join(HERE, "inputs", name)) as f:
            text = f.read()
        for key, value in values.items():
            text = text.replace(f"@{key}@", str(value))
        with open(self.path(name), "w") as f:
            f.write(text)
        return name

    def start(self, command, stdout, user=None, stdin=subprocess.DEVNULL, measured=True):
        self.log.write(f"$ {' '.join(command)}\n".encode())
        self.log.flush()
        identity = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []} if user else {}
        environment = self.environment if measured else {k: v for k, v in self.environment.items() if k != "LD_PRELOAD"}
        process = subprocess.Popen(command, cwd=self.directory, env=environment, stdin=stdin, stdout=stdout,
                                   stderr=self.log, start_new_session=True, **identity)
        self.running.append(process)
        return process

    def call(self, *command, text=(), user=None, measured=True, digest=False):
        """Runs a command to its end; returns its standard output, or its digest. Any exit code but 0 is a failure.

        The kernel counts the memory of a process from before its exec, when it was still a copy of us: so we stay small ourselves,
        take long input as pieces and long output as a digest."""
        with open(self.path(".stdin"), "w+") as source, open(self.path(".stdout"), "wb+") as out:
            source.writelines(text)
            source.seek(0)
            process = self.start(command, out, user, source, measured)
            status = self.wait(process, TIMEOUT, measured)
            out.seek(0)
            output = hashlib.file_digest(out, "sha256").hexdigest().encode() + b"\n" if digest else out.read()
        self.log.write(output)
        if status != 0:
            raise Failed(f"{os.path.basename(command[0])} ended with {self.describe(status)}")
        return output.decode(errors="replace")

    def wait(self, process, seconds, measured=True):
        """The exit code, negative for a signal. Counts the memory of the process and of all it has waited for."""
        end = time.monotonic() + seconds
        while True:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid != 0:
                break
            if time.monotonic() > end:
                self.stop(process, signal.SIGKILL)
                raise Failed(f"{process.args[0]} did not end in {seconds} s")
            time.sleep(0.002)
        process.returncode = os.waitstatus_to_exitcode(status)
        self.running.remove(process)
        if measured:
            self.peak = max(self.peak, usage.ru_maxrss * 1024)
        return process.returncode

    def stop(self, process, number):
        """Ends a process that start() started, and with SIGKILL the group that it made."""
        try:
            os.killpg(process.pid, number) if number == signal.SIGKILL else process.send_signal(number)
        except ProcessLookupError:
            pass
        return self.wait(process, 60) if process in self.running else process.returncode

    def must_run_on_ours(self, process):
        if not self.preload:
            return
        with open(f"/proc/{process.pid}/maps") as maps:
            if self.preload not in maps.read():
                raise Failed("the library is not in the process")

    @staticmethod
    def describe(code):
        return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


def measure(side, program):
    maps = side.call("cat", "/proc/self/maps") if side.preload else ""
    if side.preload and side.preload not in maps:
        raise Failed("the library was not loaded into the process")
    begin = time.monotonic()
    output = program(side)
    return Measured(output, time.monotonic() - begin, side.peak)


def without(text, *patterns):
    """The text without what differs from run to run, such as times."""
    for pattern in patterns:
        text = re.sub(pattern, "", text, flags=re.MULTILINE)
    return text
