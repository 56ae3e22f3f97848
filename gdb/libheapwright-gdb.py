# Installed as share/gdb/auto-load/PATH-OF-THE-LIBRARY-gdb.py, where gdb loads it together with the library. The commands lie in
# share/heapwright/gdb.
import os

import gdb

if not hasattr(gdb, "heapwright_is_loaded"):
    gdb.heapwright_is_loaded = True
    share = os.path.abspath(__file__).split("/gdb/auto-load/")[0]
    gdb.execute("source %s/heapwright/gdb/heapwright.py" % share)
