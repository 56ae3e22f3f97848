"""What a library writes at start cannot be written afterwards: the policy on mistakes, the
program's handlers of faults, the operators of the C++ runtime.

unwritable_test.py NM LIBRARY
"""
import os
import re
import subprocess
import sys
import unittest

NM, LIBRARY = sys.argv[1], os.path.realpath(sys.argv[2])
WRITTEN_AT_START = {"the_misuse_policy", "writes_to_syslog", "report_file", "handlers_before", "find_object", "defaults"}
OPTIONS = {"HEAPWRIGHT_ON_MISUSE": "report", "HEAPWRIGHT_SYSLOG": "1", "HEAPWRIGHT_GUARD_SAMPLE": "1", "HEAPWRIGHT_STATS_FILE": "/dev/null"}
# Its handler comes after the library's, which notes it with the next guarded sample.
PROGRAM = """
import signal
signal.signal(signal.SIGSEGV, lambda *_: None)
blocks = [bytes(300_000) for _ in range(40)]
print(open("/proc/self/maps").read())
"""


def addresses():
    """Of the variables in the library's file."""
    told = subprocess.run([NM, "-C", LIBRARY], capture_output=True, text=True, check=True).stdout
    found = re.findall(r"^([0-9a-f]+) \w (?:.*::)?(\w+)$", told, re.MULTILINE)
    return {name: int(address, 16) for address, name in found if name in WRITTEN_AT_START}


def access_of_each(environment):
    """To each variable, in a process: as in /proc/self/maps."""
    told = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True,
                          env={**os.environ, "LD_PRELOAD": LIBRARY, **environment}).stdout
    ranges = [(int(begin, 16), int(end, 16), access, line)
              for line, begin, end, access in re.findall(r"^((\w+)-(\w+) (\S+).*)$", told, re.MULTILINE)]
    base = min(begin for begin, _, _, line in ranges if line.endswith(LIBRARY))
    return {name: access for name, address in addresses().items()
            for begin, end, access, _ in ranges if begin <= base + address < end}


class Unwritable(unittest.TestCase):
    def test_without_options(self):
        self.assertEqual(access_of_each({}), dict.fromkeys(WRITTEN_AT_START, "r--p"))

    def test_with_options(self):
        self.assertEqual(access_of_each(OPTIONS), dict.fromkeys(WRITTEN_AT_START, "r--p"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
