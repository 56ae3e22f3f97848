"""What the tests of gdb and lldb share: the programs and libraries that they look at, and how answers are read."""
import os
import re
import shutil
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def script(name):
    return os.path.join(ROOT, "debuggers", name)


def programs(folder):
    """The programs that are asked about: with known blocks, the same linked statically, and with values of the kit."""
    return (os.path.join(folder, name) for name in ("known_blocks", "known_blocks_static", "kit_values"))


def libraries(folder):
    """The default malloc and the hardened one."""
    return (os.path.join(folder, name) for name in ("libheapwright.so", "libheapwright-hardened.so"))


def without_guards(folder, library):
    """What to preload, so that gdb's core files have all of the memory."""
    return ":".join([os.path.join(folder, "libno_guards.so"), library])


def words_of(answer):
    """{word at the beginning of a line: the rest}"""
    return {m[1]: m[2] for m in re.finditer(r"^(\w+) +(.*)$", answer, re.M)}


def without_names(text):
    """Of threads: gdb does not know them of a core file."""
    return re.sub(r"\(LWP (\d+) [^)]*\)", r"(LWP \1)", text)


class Case(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.directory = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.directory)

    def core_path(self):
        return os.path.join(self.directory, "core")
