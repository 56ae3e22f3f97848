"""Random recipes, as headers: what a blind search would try.

usage: random_recipes.py FOLDER COUNT [SEED]
"""
import os
import random
import sys

# Values of each field, those of the default among them. A field that has none here would change what a program sees.
FIELDS = {
    "classes.steps_per_doubling": ["4", "8", "16"],
    "spans.first_of_small": ["{4096, 4, 16}", "{8192, 4, 16}", "{16384, 4, 16}", "{32768, 8, 16}"],
    "spans.first": ["{4096, 2, 8}", "{4096, 4, 8}", "{8192, 4, 8}", "{16384, 4, 16}"],
    "spans.growth_divisor": ["8", "16", "64"],
    "spans.last": ["{8192, 4, 8}", "{16384, 4, 8}", "{32768, 8, 16}", "{65536, 8, 16}", "{131072, 8, 16}"],
    "spans.kept_empty": ["0", "16384", "262144"],
    "spans.worth_scavenging": ["16384", "65536", "262144"],
    "thread_cache.share_bytes": ["65536", "262144", "1048576", "4194304"],
    "thread_cache.long_divisor": ["2", "4", "16"],
    "thread_cache.max_bytes_per_class": ["4096", "16384", "65536", "262144"],
    "thread_cache.max_bytes_per_long": ["65536", "1048576"],
    "thread_cache.fixed": ["false", "true"],
    "thread_cache.keep_remote": ["false", "true"],
    "thread_cache.batch_bytes": ["2048", "8192", "32768"],
    "pages.growth": ["262144", "1048576", "4194304"],
    "pages.purge_window_ms": ["50", "400", "2000"],
    "pages.max_free_resident": ["1048576", "8388608", "67108864"],
    "pages.headroom_divisor": ["8", "32", "256"],
    "pages.unmap_from": ["262144", "1048576", "16777216"],
    "pages.give_back": ["heapwright::give_back_policy::" + p for p in ("over_time", "at_once", "when_asked")],
    "pages.huge": ["heapwright::huge_page_use::none"] * 3 + ["heapwright::huge_page_use::transparent"],
}


def write(folder, count, seed):
    chance = random.Random(seed)
    for number in range(count):
        changes = {field: chance.choice(values) for field, values in FIELDS.items() if chance.random() < 0.5}
        if changes.get("classes.steps_per_doubling") == "16":
            changes["spans.largest_cut"] = "65536"
        with open(os.path.join(folder, f"r{number}.hpp"), "w") as file:
            file.write("#pragma once\n#include <heapwright/heap/recipe.hpp>\n")
            file.write(f"inline constexpr heapwright::recipe r{number} = [] {{\n  heapwright::recipe r;\n")
            for field, value in changes.items():
                file.write(f"  r.{field} = {value};\n")
            file.write("  return r;\n}();\n")


if __name__ == "__main__":
    write(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 1)
