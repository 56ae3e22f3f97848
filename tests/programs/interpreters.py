"""Language runtimes, each with work that leans on malloc: their own tests, strings and hashes, threads."""
from harness import Missing, without


def python3(side):
    """Some of Python's own tests (Debian: libpython3.11-testsuite)."""
    python = "/usr/bin/python3"
    side.need(python)
    tests = ["test_json", "test_dict", "test_list", "test_gc", "test_re", "test_set"]
    if side.full:
        tests += ["test_threading", "test_io", "test_pickle", "test_unicode", "test_collections", "test_bytes", "test_thread"]
    if "yes" not in side.call(python, "-c", "import importlib.util as u; print('yes' if u.find_spec('test.test_dict') else 'no')"):
        raise Missing("python3's test modules are not installed")
    out = side.call(python, "-m", "test", "--randseed", "1", *tests)
    # A test that took more than half a minute is told behind the name of the next one.
    return without(out, r"^\d+:\d+:\d+( load avg: [\d.]+)? ", r" -- \w+ passed in .*$", r"^== .*\n", r"^.*(duration|took|[\d.]+ (sec|ms)).*\n")


def perl(side):
    side.need("perl")
    return side.call("perl", side.input("words.pl"), "2000000" if side.full else "400000")


def node(side):
    side.need("node")
    return side.call("node", side.input("workers.js"), "60" if side.full else "12")


def java(side):
    side.need("java", "javac")
    side.call("javac", side.input("Threads.java"))
    return side.call("java", "-Xmx256m", "Threads", "60" if side.full else "15")
