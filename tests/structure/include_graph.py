"""Every include points to the same folder or to one that the folder may use, and no file includes itself by a detour.

usage: include_graph.py PROJECT   prints each wrong include with file and line; exit status 1 if there is one

A *place* is a folder, or one file that stands for itself. FOLDERS says for each place what it may use: places of the project,
and headers of the system and of other projects. Headers of the C++ library are free. What is not listed is wrong, so
a new folder or a new header needs a line here.
"""
import os
import re
import sys
from pathlib import Path

KIT = "include/heapwright/"

# The layers of the library, each of which may use those before it.
LAYERS = {
    "core": "dlfcn.h elf.h fcntl.h mach-o/loader.h pthread.h sanitizer/asan_interface.h sys/syscall.h sys/wait.h unistd.h unwind.h valgrind/memcheck.h",
    "platform": "fcntl.h linux/futex.h mach/mach.h os/lock.h pthread.h sys/auxv.h sys/mman.h sys/random.h sys/syscall.h time.h unistd.h",
    "sync": "",
    "source": "malloc.h",
    "allocator": "",
    "combine": "",
    "adapt": "unistd.h",
    "heap": "",
    "malloc": "",
}
# They choose the platform, or are for Linux alone. What no layer may do: to include a platform.
FRONT_DOORS = {
    "kit.hpp": (["core", "platform", "sync", "source", "allocator", "combine", "adapt"], ""),
    "heap.hpp": (["core", "platform", "sync", "adapt", "heap"], ""),
    "live.h": ([], "dlfcn.h errno.h fcntl.h poll.h spawn.h stddef.h stdint.h stdio.h stdlib.h string.h sys/prctl.h "
                   "sys/wait.h time.h unistd.h"),
    "live.hpp": (["core", "combine", "live.h"], ""),
}

# The folders around the library.
AROUND = {
    "abi": ([KIT + "core"], "dirent.h dlfcn.h link.h pthread.h sys/auxv.h sys/mman.h sys/syscall.h unistd.h"),
    # From a frame to its caller's, for what is loaded into other people's programs.
    "unwind": (["abi/written_at_start.hpp", KIT + "core"], "dlfcn.h link.h pthread.h sys/syscall.h unistd.h"),
    "malloc": (["abi", "unwind"] + [KIT + layer for layer in LAYERS],
               "fcntl.h malloc.h pthread.h signal.h sys/auxv.h sys/resource.h sys/socket.h sys/syscall.h sys/un.h unistd.h"),
    # heapwright.dll, and the command beside it.
    "malloc/windows": (["malloc/chosen_recipe.hpp", "malloc/heap_record_of.hpp", "malloc/heap_statistics_of.hpp", "malloc/options.hpp"] + [KIT + layer for layer in LAYERS], "intrin.h psapi.h windows.h"),
    # libheapwright.dylib.
    "malloc/macos": (["malloc/chosen_recipe.hpp", "malloc/heap_statistics_of.hpp", "malloc/options.hpp"] + [KIT + layer for layer in LAYERS],
                     "mach/mach.h malloc/malloc.h pthread.h sys/resource.h unistd.h"),
    "tools/windows": ([KIT + "core", KIT + "malloc/process_record.hpp", "malloc/windows/child_processes.hpp", "malloc/windows/library_into_process.hpp", "malloc/windows/module_list.hpp",
                       "malloc/windows/windows_headers.hpp", "tools/build_surroundings.hpp", "tools/compiler.hpp", "tools/compiler_text.hpp", "tools/failure.hpp",
                       "tools/heap_reading.hpp", "tools/heap_text.hpp", "tools/quantities.hpp", "tools/recipe_build.hpp", "tools/statistics.hpp", "tools/terminal.hpp"], "fmt/format.h io.h"),
    # The format: its readers need nothing but the C++ library.
    "segment": ([], "fcntl.h sys/mman.h sys/stat.h time.h unistd.h"),
    # Of its own too: what threads write (ring.hpp) is for the probe.
    "trace": ([], "fcntl.h sys/stat.h tsl/robin_map.h unistd.h xxhash.h zstd.h"),
    # Is loaded into other people's programs, and brings little.
    "probe": (["abi", "unwind", "segment/segment.hpp", "segment/sample_weight.hpp", "trace/anonymous_memory.hpp", "trace/ring.hpp", "trace/stamp.hpp", KIT + "core", KIT + "platform", KIT + "sync",
               KIT + "heap/block_claim.hpp", KIT + "live.h"],
              "dirent.h dlfcn.h fcntl.h link.h linux/futex.h pthread.h sched.h signal.h sys/auxv.h sys/file.h sys/mman.h sys/prctl.h sys/resource.h sys/stat.h sys/statfs.h "
              "sys/syscall.h sys/types.h time.h unistd.h"),
}

# The command, from its parts to its main: each may use those before it. It sees the library as its users do, never the
# heap's inside.
TOOLS_SEE = [KIT + "kit.hpp", KIT + "malloc/process_record.hpp", KIT + "malloc/process_report.hpp", KIT + "heap/figures.hpp", KIT + "heap/recipe.hpp"]
TOOLS = {
    "tools": "arpa/inet.h dirent.h fcntl.h fmt/format.h fmt/ranges.h gelf.h gnu/libc-version.h link.h netinet/in.h "
             "nlohmann/json.hpp poll.h signal.h spawn.h sys/ioctl.h sys/mman.h sys/prctl.h sys/ptrace.h sys/resource.h "
             "sys/socket.h sys/stat.h sys/statvfs.h sys/types.h sys/uio.h sys/utsname.h sys/wait.h sys/xattr.h unistd.h",
    "tools/symbols": "dwarf.h elfutils/libdwfl.h fcntl.h fmt/format.h libiberty/demangle.h protozero/pbf_builder.hpp "
                     "sys/stat.h unistd.h zlib.h",
    "tools/live": "arpa/inet.h curl/curl.h dlfcn.h fcntl.h fmt/format.h fmt/ranges.h linux/openat2.h netdb.h netinet/in.h netinet/tcp.h nlohmann/json.hpp poll.h "
                  "protozero/pbf_reader.hpp sys/eventfd.h sys/file.h sys/ioctl.h sys/random.h sys/signalfd.h sys/socket.h sys/stat.h sys/syscall.h sys/types.h "
                  "sys/un.h sys/wait.h termios.h unistd.h zlib.h",
    "tools/leaks": "dirent.h elf.h fcntl.h fmt/format.h nlohmann/json.hpp sys/ptrace.h sys/syscall.h sys/types.h sys/uio.h "
                   "sys/user.h sys/wait.h unistd.h",
    "tools/record": "fcntl.h fmt/format.h sys/file.h sys/mman.h sys/resource.h sys/stat.h sys/types.h tsl/robin_map.h unistd.h",
    "tools/replay": "fcntl.h fmt/format.h linux/filter.h linux/futex.h linux/seccomp.h nlohmann/json.hpp pthread.h sched.h sys/ioctl.h sys/mman.h sys/personality.h sys/prctl.h sys/resource.h "
                    "sys/stat.h sys/syscall.h time.h tsl/robin_map.h tsl/robin_set.h unistd.h",
    "tools/advise": "fmt/format.h nlohmann/json.hpp sys/mman.h tsl/robin_map.h unistd.h",
    "tools/fit": "fmt/format.h fmt/ranges.h nlohmann/json.hpp tsl/robin_map.h unistd.h",
    "tools/help_text.hpp": "CLI/CLI.hpp",
    "tools/help_text.cpp": "fmt/format.h fmt/ranges.h",
    "tools/command_words.hpp": "CLI/CLI.hpp",
    "tools/command_words.cpp": "fmt/format.h",
    "tools/option_values.hpp": "CLI/CLI.hpp fmt/format.h",
    "tools/option_values.cpp": "",
    "tools/subcommands.hpp": "CLI/CLI.hpp",
    "tools/subcommands.cpp": "fmt/format.h unistd.h",
    "tools/main.cpp": "CLI/CLI.hpp fmt/format.h unistd.h",
    "tools/manual": "CLI/CLI.hpp fmt/format.h fmt/ranges.h",
}
READS_SEGMENTS = ["tools/symbols", "tools/live", "tools/leaks", "tools/record", "tools/replay", "tools/advise", "tools/fit"]

# Where a quoted include is looked for, after the folder of the file.
INCLUDE_PATHS = ["tools", "tools/symbols", "tools/live", "tools/leaks", "tools/record", "tools/replay", "tools/advise", "tools/fit", "segment", "trace"]

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^">]+)[">]')


def folders():
    """Place -> (places that it may use, headers that it may use)."""
    result = {}
    for number, (layer, headers) in enumerate(LAYERS.items()):
        result[KIT + layer] = ([KIT + before for before in list(LAYERS)[:number]], headers.split())
    for name, (used, headers) in FRONT_DOORS.items():
        result[KIT + name] = ([KIT + place for place in used], headers.split())
    for name, (used, headers) in AROUND.items():
        result[name] = (used, headers.split())
    for number, (name, headers) in enumerate(TOOLS.items()):
        used = list(TOOLS)[:number] + TOOLS_SEE + (["segment", "trace"] if name in READS_SEGMENTS else [])
        result[name] = (used, headers.split())
    return result


FOLDERS = folders()


def sources(root: Path):
    for folder in ["include", *(top for top in AROUND if "/" not in top), "tools"]:
        for file in sorted((root / folder).rglob("*")):
            if re.fullmatch(r".*\.([ch]pp|h|cpp\.in)", file.name):
                yield file.relative_to(root).as_posix()


def place_of(file: str):
    """The nearest: the file itself, its folder, or one around that."""
    while file and file not in FOLDERS:
        file = os.path.dirname(file)
    return file or None


def includes(root: Path, file: str):
    for number, line in enumerate((root / file).read_text().splitlines(), 1):
        if match := INCLUDE.match(line):
            yield number, match.group(1) == '"', match.group(2)


def included_file(file: str, is_quoted: bool, name: str, known):
    """The file of the project, or None."""
    candidates = ["include/" + name]
    if is_quoted:
        candidates = [os.path.normpath(f"{folder}/{name}") for folder in [os.path.dirname(file), *INCLUDE_PATHS]]
    return next((c for c in candidates if c in known), None)


def fault(file: str, is_quoted: bool, name: str, target):
    """What is wrong with this include, or None."""
    place = place_of(file)
    used, headers = FOLDERS[place]
    if target is None:
        if is_quoted or name.startswith("heapwright/"):
            return f"{name}: there is no such file"
        if ("." in name or "/" in name) and name not in headers:
            return f"{place} must not include <{name}>"
        return None
    if file.startswith(KIT) and is_quoted:
        return f"{name}: a public header is included as <heapwright/LAYER/...>"
    is_platform = target.startswith(KIT + "platform/") and target != KIT + "platform/concept.hpp"
    if is_platform and file.startswith(KIT) and place not in (KIT + "platform", KIT + "kit.hpp", KIT + "heap.hpp"):
        return f"{place} must be told its platform, not choose it"
    if place_of(target) not in (place, *used) and target not in used:
        return f"{place} must not include {target}"
    return None


def cycles(graph):
    """Each include that closes a cycle, as the files of the cycle."""
    state, path = {}, []

    def visit(file):
        state[file] = "open"
        path.append(file)
        for target in graph[file]:
            if state.get(target) == "open":
                yield path[path.index(target):] + [target]
            elif target not in state:
                yield from visit(target)
        path.pop()
        state[file] = "done"

    for file in graph:
        if file not in state:
            yield from visit(file)


def main():
    root = Path(sys.argv[1])
    known = list(sources(root))
    wrong, graph, used_headers = [], {file: [] for file in known}, {place: set() for place in FOLDERS}
    for file in known:
        place = place_of(file)
        if place is None:
            wrong.append(f"{file}:1: this folder is not in the list of folders")
            continue
        for number, is_quoted, name in includes(root, file):
            target = included_file(file, is_quoted, name, graph)
            if target:
                graph[file].append(target)
            used_headers[place].add(name)
            if what := fault(file, is_quoted, name, target):
                wrong.append(f"{file}:{number}: {what}")
    wrong += [f"{cycle[0]}:1: a cycle: {' -> '.join(cycle)}" for cycle in cycles(graph)]
    for place, (_, headers) in FOLDERS.items():
        wrong += [f"{place} does not include <{name}>: take it off the list" for name in headers if name not in used_headers[place]]
    print(*wrong, sep="\n")
    print(f"{len(known)} files, {len(wrong)} wrong")
    sys.exit(1 if wrong or len(known) < 250 else 0)


if __name__ == "__main__":
    main()
