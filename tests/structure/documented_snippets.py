"""Runs the indented snippets of README.md and docs/*.md as they are written: shell, C++, CMake.

usage: documented_snippets.py BUILD_FOLDER CMAKE CXX CC PROJECT

The build is installed into a folder that is thrown away, and that has the programs, recipes and
saved runs which the pages name. A snippet that this script does not know how to run fails, so that
none is added without a test. Blocks between ``` are run by documented_code.py and
documented_programs.py.
"""
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SNIPPET = re.compile(r"(?:^    \S.*\n|^     .*\n|^\n(?=    ))+", re.MULTILINE)

PROGRAM = """#include <stdlib.h>
int main(void) {
  void* volatile lost = malloc(100);
  lost = NULL;
  return lost != NULL;
}
"""
PARSER = "#include <heapwright/kit.hpp>\nint main() { heapwright::arena<> a; return a.allocate({10, 8}) == nullptr; }\n"
SCRIPT = "print(sum(len(str(i)) for i in range(10000)))\n"
# Enough pages that their size matters.
ORDERS = """create table orders(item text);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 6000) insert into orders select hex(zeroblob(1900)) from n;
"""
STAYS = "#!/bin/sh\nsleep 60\n"

# Pictures and reports: what the page says that is printed. Other tests compare it with what is.
PRINTED = ("malloc   override/ ", "heapwright leaks: ", "On this program, ", "heapwright, when the driver has ended: ", "heapwright takes the same memory",
           "heapwright: write beyond a block: ", "heapwright: read after free: ", "peak RSS -")

# Under wine, in tests/windows.
# On musl, in tests/malloc/life.
# With a real Java and a real Python, in tests/live/programs_test.py; in real debuggers, in tests/debuggers; a real nginx, in
# tests/live/viewers_test.py; a receiver that asks for a header, in tests/live/push_test.py. PromQL is Prometheus's. The tracepoints by gdb, in tests/probe: perf needs root, and a kernel that has it.
RUN_ELSEWHERE = ("cmake --preset windows", "tests/macos/build.sh .", "DYLD_INSERT_LIBRARIES=", "heapwright run -- program.exe", "x86_64-w64-mingw32-g++ ", "heapwright live -- java ", "PYTHONMALLOC=malloc heapwright live ", "USE_ZEND_ALLOC=0 heapwright live ",
                 "(gdb) ", "(lldb) ", "add-auto-load-safe-path ", "seal     of a live block", "state    in use, or free behind", "LD_PRELOAD=/path/to/", "note: The list of deferred frees ", "server {\n  listen 443", "perf buildid-cache ",
                 "export HEAPWRIGHT_PUSH_HEADERS=", "sum by (program) ")


class Trouble(Exception):
    pass


class Place:
    """A folder in which the snippets can be run, in their order."""

    def __init__(self, folder, build, cmake, cxx, cc, project):
        self.folder, self.cmake, self.cxx, self.cc, self.project = folder, cmake, cxx, cc, project
        self.working = folder
        self.watched = None
        self.waiting = None
        (folder / "build").mkdir()
        (folder / "build/release").symlink_to(build)
        self.installed = folder / "heapwright"
        self.install()
        self.names = folder / "names"
        self.names.mkdir()
        for name, tool in (("c++", cxx), ("cc", cc), ("cmake", cmake)):
            (self.names / name).symlink_to(tool)
        self.environment = {**os.environ, "HOME": str(folder), "NO_COLOR": "1",
                            "PATH": f"{self.names}:{self.installed}/bin:{os.environ['PATH']}"}
        self.environment.pop("DISPLAY", None)

    def install(self):
        self.must(self.cmake, "--install", self.folder / "build/release", "--prefix", self.installed)

    def must(self, *command, **options):
        done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              **options)
        if done.returncode != 0:
            raise Trouble(f"{command}\n{done.stdout}")

    def furnish(self, folder):
        """What the pages take for granted beside the reader."""
        (folder / "program.py").write_text(SCRIPT)
        (folder / "bench/demo").mkdir(parents=True)
        (folder / "bench/demo/orders.sql").write_text(ORDERS)
        (folder / "app.c").write_text(PROGRAM)
        (folder / "parser.cpp").write_text(PARSER)
        (folder / "known-leaks.txt").write_text("# known\nmake_cache\n")
        recipe = "#include <heapwright/heap/recipe.hpp>\ninline constexpr heapwright::recipe app{};\n"
        (folder / "recipe.hpp").write_text(recipe)
        self.must(self.cc, "-g", "-O0", folder / "app.c", "-o", folder / "program")
        shutil.copy(folder / "program", self.names / "program")
        stays = self.names / "redis-server"
        stays.write_text(STAYS)
        stays.chmod(0o755)
        for name in ("run", "a", "b", "before", "after"):
            self.must("heapwright", "live", "--no-browser", "--exit-with-program", "--port", "0", "--save",
                      folder / f"{name}.saved", "--", "./program", cwd=folder, env=self.environment)

    def begin_page(self):
        self.working = Path(tempfile.mkdtemp(dir=self.folder))
        (self.working / "build").symlink_to(self.folder / "build")
        self.furnish(self.working)

    def watched_process(self):
        """What the pages call 1234: on the malloc and with the probe."""
        if self.watched is None:
            libraries = self.installed / "lib"
            preload = f"{libraries}/libheapwright-probe.so:{libraries}/libheapwright.so"
            self.watched = subprocess.Popen(["sleep", "600"], env={**self.environment, "LD_PRELOAD": preload})
            until = time.monotonic() + 60
            while not re.search(rf"^ *{self.watched.pid}  running", self.shell("heapwright live --list"), re.MULTILINE):
                if time.monotonic() > until:
                    raise Trouble(f"heapwright live --list does not show process {self.watched.pid}")
                time.sleep(0.1)
        return self.watched.pid

    def waiting_process(self):
        """What the pages call 1234 where it is recorded: with a probe that does not count."""
        if self.waiting is None:
            probe = f"{self.installed}/lib/libheapwright-probe.so"
            self.waiting = subprocess.Popen(["/bin/bash", "-c", "echo; while :; do x=$(:); done"], stdout=subprocess.PIPE,
                                            env={**self.environment, "LD_PRELOAD": probe, "HEAPWRIGHT_PROBE": "off"})
            self.waiting.stdout.readline()
        return self.waiting.pid

    def end(self):
        for process in (self.watched, self.waiting):
            if process is not None:
                process.kill()
                process.communicate()

    def shell(self, line, expected=(0,)):
        done = subprocess.run(["/bin/bash", "-c", line], cwd=self.working, env=self.environment, text=True, timeout=300,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode not in expected:
            raise Trouble(f"$ {line}\nends with {done.returncode}, not {expected}:\n{done.stdout}")
        return done.stdout

    def interrupted(self, line):
        """A command that stays until ctrl-C: once it has told its address."""
        child = subprocess.Popen(["/bin/bash", "-c", f"exec {line}"], cwd=self.working, env=self.environment, text=True,
                                 stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True)
        try:
            said = ""
            while "http://" not in said:
                more = child.stderr.readline()
                said += more
                if not more:
                    raise Trouble(f"$ {line}\nends with {child.wait()} before it tells an address:\n{said}")
            os.killpg(child.pid, signal.SIGINT)
            try:
                child.communicate(timeout=60)
            except subprocess.TimeoutExpired:
                raise Trouble(f"$ {line}\ngoes on after ctrl-C") from None
        finally:
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()


def without_remark(line):
    return re.sub(r"\s+# .*$", "", line)


def run_shell_line(place, line):
    line = without_remark(line)
    words = line.split()
    if words[0].startswith("script/"):  # each is a build of its own, and this test is run by one of them
        if not os.access(place.project / words[0], os.X_OK):
            raise Trouble(f"{words[0]} cannot be executed")
        return
    if words[0] == "export":
        name, value = words[1].split("=", 1)
        place.environment[name] = place.shell(f"x={value}; echo \"$x\"").strip()
        return
    if words[0] == "xargs":
        place.shell(line)
        left = [str(path) for path in place.installed.rglob("*") if not path.is_dir()]
        if left:
            raise Trouble(f"$ {line}\nleaves {left}")
        place.install()
        return
    subcommand = words[1] if words[0] == "heapwright" else ""
    if "[" in line or "--driver" in words:  # compare_servers_test.py runs servers
        check_synopsis(place, line)
        return
    if subcommand == "record" and "1234" in words:
        line = line.replace("1234", f"{'' if '--seconds' in words else '--seconds 0.2 '}{place.waiting_process()}")
    line = line.replace("1234", str(place.watched_process())).replace("SEGMENT", "run.saved")
    line = line.replace("LD_PRELOAD=PREFIX", f"LD_PRELOAD={place.installed}").replace("./server", "./program")
    if subcommand == "live" and "--list" not in words and "--snapshot" not in words:
        line = line.replace(" live ", " live --no-browser --port 0 ")
        place.interrupted(line)
    elif subcommand == "leaks":
        place.shell(line, (0, 1))
    elif subcommand == "diff":
        place.shell(line, (0, 1))
    elif subcommand == "compare":
        place.shell(line.replace(" compare ", " compare --rounds 2 --only glibc,heapwright "))
    elif subcommand == "fit":
        place.shell(re.sub(r" --minutes [\d.]+", "", line).replace(" fit ", " fit --minutes 0.1 "))
        # Noise may make it keep the default; the lines behind it need a malloc.
        library = place.working / "fitted/libfitted.so"
        if library.parent.is_dir() and not library.exists():
            shutil.copy(place.installed / "lib/libheapwright.so", library)
    else:
        place.shell(line)


def check_synopsis(place, line):
    """`heapwright SUBCOMMAND [--option]...`: the options are there."""
    told = place.shell(f"heapwright {line.split()[1]} --help")
    own = re.sub(r"'[^']*'", "", line).partition(" -- ")[0]
    for option in re.findall(r"--[a-z]+", own):
        if option not in told:
            raise Trouble(f"{line}\n{option} is no option")


def run_cpp(place, text):
    includes = [line for line in text.splitlines() if line.startswith("#include")]
    rest = [line for line in text.splitlines() if not line.startswith("#include")]
    is_header = "inline constexpr" in text
    if is_header:
        (place.working / "app.hpp").write_text(text)
        code = text + "int main() {}\n"
    else:
        code = "\n".join(["#include <vector>", *includes, "int main() {", *rest, "}", ""])
    (place.working / "snippet.cpp").write_text(code)
    place.shell("c++ -std=c++20 -Wall -Wextra -Werror -I ~/heapwright/include snippet.cpp -o snippet")
    place.shell("HEAPWRIGHT=/bin/true ./snippet")


def run_cmake(place, text):
    project = Path(tempfile.mkdtemp(dir=place.folder))
    (project / "app.c").write_text(PROGRAM)
    (project / "parser.cpp").write_text(PARSER)
    targets = "add_executable(app app.c)\nadd_executable(parser parser.cpp)\n"
    (project / "CMakeLists.txt").write_text(f"cmake_minimum_required(VERSION 3.25)\nproject(reader C CXX)\n{targets}{text}")
    before, place.working = place.working, project
    place.shell(f"cmake -G Ninja -B build -DCMAKE_PREFIX_PATH={place.installed} && cmake --build build && build/app && build/parser")
    place.working = before


def run_snippet(place, text):
    """One kind of text, or several with an empty line between."""
    if text.startswith(PRINTED + RUN_ELSEWHERE):
        return
    if text.startswith("find_package"):
        run_cmake(place, text)
    elif text.startswith("#include"):
        parts = re.split(r"\n\n(?=heapwright [a-z])", text, maxsplit=1)
        run_cpp(place, parts[0] + "\n")
        if len(parts) > 1:
            run_snippet(place, parts[1])
    else:
        for line in text.replace("\\\n", "").splitlines():
            if not line.strip():
                continue
            if not re.match(r"(heapwright|script/\w+|cc|c\+\+|cmake|export|xargs|LD_PRELOAD=\S+) ?", line):
                raise Trouble(f"this test does not know how to run:\n{text}")
            run_shell_line(place, line)


def main():
    build, cmake, cxx, cc, project = sys.argv[1:]
    trouble = []
    count = 0
    with tempfile.TemporaryDirectory() as folder:
        place = Place(Path(folder), build, cmake, cxx, cc, Path(project))
        try:
            for page in [Path(project) / "README.md", *sorted(Path(project).glob("docs/*.md"))]:
                text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
                snippets = [re.sub(r"^    ", "", m[0], flags=re.MULTILINE).strip("\n") + "\n" for m in SNIPPET.finditer(text)
                            if m[0].strip()]
                if snippets:
                    place.begin_page()
                for snippet in snippets:
                    count += 1
                    try:
                        run_snippet(place, snippet)
                    except Trouble as what:
                        trouble.append(f"{page}: {what}")
        finally:
            place.end()
    if trouble:
        sys.exit("\n\n".join(trouble))
    print(f"{count} snippets")


if __name__ == "__main__":
    main()
