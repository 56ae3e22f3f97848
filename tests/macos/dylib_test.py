#!/usr/bin/env python3
"""libheapwright.dylib cannot be run here: the file is looked at. What dyld is told to interpose, what the library needs and gives, and what it
must not have.

Usage: dylib_test.py path/to/libheapwright.dylib x86_64|arm64
"""
import struct
import sys
import unittest

LIBRARY, PROCESSOR = sys.argv[1:3]
CPU_TYPES = {"x86_64": 0x01000007, "arm64": 0x0100000C}
INTERPOSED = ("malloc free calloc realloc reallocf aligned_alloc valloc posix_memalign malloc_size malloc_good_size malloc_default_zone "
              "malloc_zone_from_ptr").split()
IF_THERE = ["malloc_type_" + name for name in "malloc calloc free realloc valloc aligned_alloc posix_memalign".split()]
SEGMENT, SYMBOL_TABLE, LOADED, LOADED_WEAKLY, THREAD_VARIABLES = 0x19, 0x2, 0xC, 0x80000018, 0x13


class MachO:
    """Mach-O as Apple's <mach-o/loader.h> and <mach-o/nlist.h> have it: one 64-bit image."""

    def __init__(self, path):
        with open(path, "rb") as file:
            data = file.read()
        magic, self.cpu_type, _, self.file_type, count, _, _, _ = struct.unpack_from("<8I", data)
        assert magic == 0xFEEDFACF, hex(magic)
        self.sections, self.libraries, self.imports, self.exports, self.weak = {}, [], set(), set(), set()
        at = 32
        for _ in range(count):
            command, size = struct.unpack_from("<2I", data, at)
            if command == SEGMENT:
                for i in range(struct.unpack_from("<I", data, at + 64)[0]):
                    section, segment, _, length, _, _, _, _, flags = struct.unpack_from("<16s16s2Q5I", data, at + 72 + i * 80)
                    self.sections[(segment.rstrip(b"\0") + b"," + section.rstrip(b"\0")).decode()] = (length, flags & 0xFF)
            elif command in (LOADED, LOADED_WEAKLY):
                offset, = struct.unpack_from("<I", data, at + 8)
                self.libraries.append(data[at + offset:at + size].split(b"\0")[0].decode())
            elif command == SYMBOL_TABLE:
                symbols, number, strings, _ = struct.unpack_from("<4I", data, at + 8)
                for i in range(number):
                    name_at, kind, _, description, _ = struct.unpack_from("<IBBHQ", data, symbols + i * 16)
                    name = data[strings + name_at:data.index(b"\0", strings + name_at)].decode()
                    if kind & 0xE0 or not kind & 1:  # of a debugger, or local
                        continue
                    if kind & 0x0E:
                        if not kind & 0x10:  # not hidden
                            self.exports.add(name)
                    else:
                        self.imports.add(name)
                        if description & 0x40:
                            self.weak.add(name)
            at += size


class Dylib(unittest.TestCase):
    def setUp(self):
        self.image = MachO(LIBRARY)

    def test_is_a_library_for_the_processor(self):
        self.assertEqual(self.image.file_type, 6)
        self.assertEqual(self.image.cpu_type, CPU_TYPES[PROCESSOR])

    def test_interposes_each_function(self):
        pairs = len(INTERPOSED) + len(IF_THERE)
        self.assertEqual(self.image.sections["__DATA,__interpose"][0], 16 * pairs)
        for name in INTERPOSED + IF_THERE:
            self.assertIn("_" + name, self.image.imports)

    def test_what_older_systems_lack_may_be_missing(self):
        self.assertEqual(self.image.weak, {"_" + name for name in IF_THERE})

    def test_needs_the_systems_library_alone(self):
        self.assertEqual([n for n in self.image.libraries if not n.startswith("/usr/lib/libSystem.")], [])

    def test_has_no_thread_local_variables(self):
        """Their storage would be allocated by malloc."""
        self.assertEqual([name for name, (_, kind) in self.image.sections.items() if kind == THREAD_VARIABLES], [])
        self.assertNotIn("__tlv_bootstrap", self.image.imports)

    def test_needs_no_private_functions(self):
        for name in self.image.imports:
            for forbidden in ("___ulock", "__os_tsd", "__pthread_", "_Z", "___cxa_", "__Znwm"):
                self.assertFalse(name.startswith(forbidden), name)

    def test_exports_nothing_by_accident(self):
        self.assertEqual(self.image.exports, {"_heapwright_option_table"})


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
