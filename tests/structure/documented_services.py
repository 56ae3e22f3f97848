"""Runs what docs/use-with says: servers are started as the page says, asked as it says, and must run on libheapwright.

usage: documented_services.py HEAPWRIGHT PROJECT

Of a page, the indented lines are run in their order. Where a page has a port, `heapwright run` and `heapwright live` start a server there, which
stays until the next one of the page, or the page's end. A page whose program is not installed is left out, by name.
"""
import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HEAPWRIGHT, PROJECT = (Path(word).resolve() for word in sys.argv[1:])
PATIENCE = 120
LINE = re.compile(r"^    (\S.*)$", re.MULTILINE)
PORT = re.compile(r"\b(639\d)\b")
CGO = 'package main\n\n// #include <stdlib.h>\nimport "C"\n\nfunc main() { C.free(C.malloc(100)) }\n'
NGINX = "pid nginx.pid;\nerror_log error.log;\nevents {}\nhttp { access_log off; server { listen 127.0.0.1:6391; location / { return 200 hello; } } }\n"
NEEDED = {"redis": ["redis-server", "redis-benchmark"], "postgresql": ["/usr/lib/postgresql/15/bin/initdb", "psql"], "nginx": ["nginx", "curl"],
          "python": ["python3", "curl"], "node": ["node", "curl"], "java": ["java"], "go": ["go"], "rust": ["rustc"], "systemd": ["systemd-analyze"]}
NOT_TRIED = {"README", "docker", "kubernetes"}


class Trouble(Exception):
    pass


class Page:
    def __init__(self, name, folder, port):
        self.name, self.folder, self.port, self.server = name, Path(folder), port, None
        self.environment = {**os.environ, "PATH": f"{HEAPWRIGHT.parent}:/usr/sbin:{os.environ['PATH']}"}
        self.options = {"cwd": folder, "env": self.environment, "stdin": subprocess.DEVNULL, "stderr": subprocess.STDOUT}
        if name == "postgresql" and os.getuid() == 0:
            owner = pwd.getpwnam("postgres")
            os.chown(folder, owner.pw_uid, owner.pw_gid)
            self.options |= {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []}

    def furnish(self):
        (self.folder / "nginx.conf").write_text(NGINX)
        if self.name == "go":
            (self.folder / "program.go").write_text(CGO)
            self.must("go build -o program program.go")
        if self.name == "rust":
            (self.folder / "program.rs").write_text('fn main() { println!("{}", vec![1; 100].len()); }\n')
            self.must("rustc program.rs")

    def must(self, line):
        try:
            done = subprocess.run(["/bin/bash", "-c", line], stdout=subprocess.PIPE, text=True, timeout=PATIENCE, **self.options)
        except subprocess.TimeoutExpired as late:
            raise Trouble(f"$ {line}\ngoes on after {PATIENCE} s:\n{late.stdout}") from None
        if done.returncode != 0:
            raise Trouble(f"$ {line}\nends with {done.returncode}:\n{done.stdout}")
        return done.stdout

    def serve(self, line):
        self.stop()
        with open(self.folder / "log", "w") as log:
            self.server = subprocess.Popen(["/bin/bash", "-c", f"exec {line}"], stdout=log, **self.options)
        until = time.monotonic() + PATIENCE
        while True:
            if self.server.poll() is not None or time.monotonic() > until:
                raise Trouble(f"$ {line}\ndoes not answer on port {self.port}:\n{(self.folder / 'log').read_text()}")
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                break
            except OSError:
                time.sleep(0.1)
        # `run` becomes the server; `live` starts it.
        if " run " in line:
            told = self.must(f"heapwright info {self.server.pid}")
            if "libheapwright.so" not in told:
                raise Trouble(f"$ {line}\nis not on libheapwright:\n{told}")

    def stop(self):
        if self.server is None:
            return
        self.server.send_signal(signal.SIGINT)
        try:
            self.server.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.server.kill()
            self.server.wait()
            raise Trouble(f"{self.name}: a server goes on after SIGINT") from None
        finally:
            self.server = None

    def run(self, line):
        if line.startswith("env "):
            return  # a line of nginx.conf
        if self.port and " live " in line:
            self.serve(line.replace(" live ", " live --no-browser --port 0 "))
        elif " compare " in line:
            self.stop()
            self.must(re.sub(r" --only \S+", "", line).replace(" compare ", " compare --rounds 2 --only glibc,heapwright "))
        elif self.port and " run " in line:
            self.serve(line)
        else:
            self.must(line)


def check_units(page, text):
    """The drop-ins, beside the unit of a service."""
    for number, unit in enumerate(re.findall(r"^```ini\n(.*?)^```", text, re.MULTILINE | re.DOTALL)):
        file = page.folder / f"server{number}.service"
        file.write_text("[Unit]\nDescription=A server\n" + unit + "ExecStart=/bin/true\n")
        said = page.must(f"systemd-analyze verify --man=no ./{file.name}")
        if file.name in said:
            raise Trouble(f"{unit}\n{said}")


def main():
    trouble, left_out = [], []
    for path in sorted((PROJECT / "docs/use-with").glob("*.md")):
        name = path.stem
        if name in NOT_TRIED:
            continue
        if any(shutil.which(program, path=f"/usr/sbin:{os.environ['PATH']}") is None for program in NEEDED[name]):
            left_out.append(name)
            continue
        text = path.read_text()
        with tempfile.TemporaryDirectory() as folder:
            port = PORT.search(text)
            page = Page(name, folder, int(port[1]) if port else None)
            try:
                page.furnish()
                for line in LINE.findall(re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)):
                    page.run(line)
                if name == "systemd":
                    check_units(page, text)
            except Trouble as what:
                trouble.append(f"{path}: {what}")
            finally:
                page.stop()
    if trouble:
        sys.exit("\n\n".join(trouble))
    print(f"not installed, left out: {', '.join(left_out)}" if left_out else "all pages")


if __name__ == "__main__":
    main()
