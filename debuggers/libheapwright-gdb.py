# Installed as share/gdb/auto-load/PATH-OF-THE-LIBRARY-gdb.py, where gdb loads it together with the library. The commands lie in
# share/heapwright/debuggers.
import os

import gdb

if not hasattr(gdb, "heapwright_is_loaded"):
    gdb.heapwright_is_loaded = True
    # gdb's own `source` would leave this file's name in __file__.
    path = os.path.abspath(__file__).split("/gdb/auto-load/")[0] + "/heapwright/debuggers/heapwright_gdb.py"
    with open(path, encoding="utf-8") as file:
        exec(compile(file.read(), path, "exec"), {"__file__": path, "__name__": "heapwright_gdb"})
