#!/usr/bin/env python3
"""Makes the inputs in tests/fuzz/corpus that a target begins with: small ones, one for each form that it reads. Inputs of faults that were found are beside
them, named after the fault, and are left alone."""
import struct
from pathlib import Path

CORPUS = Path(__file__).parent / "corpus"


def keep(target, name, data):
    folder = CORPUS / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(data)


def module_with_tables(function):
    """A file with .eh_frame_hdr, one common entry, and one function of 64 bytes with these instructions."""
    header = bytearray(b"\x01\x1b\x03\x3b") + struct.pack("<iI", 0, 1)  # relative pointers; a sorted table of one
    tables_at = len(header) + 8
    common = struct.pack("<I", 0) + b"\x01zR\0\x01\x78\x10\x01\x1b" + b"\x0c\x07\x08\x90\x01"
    common += b"\0" * (-len(common) % 4)
    common = struct.pack("<I", len(common)) + common
    entry_at, code_at = tables_at + len(common), 64
    body = b"\0" + function
    body += b"\0" * (-len(body) % 4)
    entry = struct.pack("<IIiI", 12 + len(body), entry_at + 4 - tables_at, code_at - (entry_at + 8), 64) + body
    return bytes(header) + struct.pack("<ii", code_at, entry_at) + common + entry


def change(part, count, offset, value):
    """One change of patched_segment.hpp."""
    return struct.pack("<BBH", part, count - 1, offset) + (value if isinstance(value, bytes) else struct.pack("<Q", value))


def main():
    for name, function, at in (("frame_pointer", b"\x41\x0e\x10\x86\x02\x43\x0d\x06", 70),
                               ("realigned", b"\x45\x0c\x0a\x00\x49\x10\x06\x02\x76\x00\x46\x0f\x03\x76\x78\x06", 96),
                               ("remembered", b"\x41\x0e\x10\x0a\x02\x04\x0b\xc6\x2e\x10", 70)):
        keep("call_frame_info", name, module_with_tables(function) + bytes([at]))

    host = b"Host: localhost\r\n"
    keep("http_request", "get", b"GET /api/stacks?value=live&most=10 HTTP/1.1\r\n" + host + b"Cookie: a=b\r\nConnection: close\r\n\r\n")
    keep("http_request", "post", b"POST /api/control HTTP/1.1\r\n" + host + b"Content-Type: application/json\r\nContent-Length: 17\r\n\r\n{\"interval\": 100}")
    keep("http_request", "two", (b"HEAD /%41+b HTTP/1.0\r\n" + host + b"\r\n") * 2)
    keep("http_request", "chunked", b"POST / HTTP/1.1\r\n" + host + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n")

    keep("perf_map", "list", b"7f0000001000 40 Builtin:main\n0x7f0000001020 0x10 inner name\n1 ffffffffffffffff all\n10 8 small\n")

    for target in ("segment", "views"):
        keep(target, "unchanged", b"")
        keep(target, "running", change(0, 4, 28, 0))
        keep(target, "many_slots", change(1, 4, 48, 0xffffffff))
        keep(target, "counts", b"".join(change(2, 8, 4096 + 200 + 8 * i, ~0 & 2**64 - 1 - i) for i in range(12)))
        keep(target, "names", b"".join(change(part, 8, offset, b"\xff\xc0\"\n\\\0<,") for part, offset in ((2, 4096 + 8), (3, 24), (3, 280))))
        keep(target, "no_next_stack", change(5, 4, 8, 0xffffffff))
        keep(target, "cut", change(8, 1, 0x800, 0))


if __name__ == "__main__":
    main()
