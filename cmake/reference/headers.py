"""Which headers are public, and on which page of the reference their names are."""

# Headers whose names are not all public: which are.
SOME = {
    "core/bits.hpp": {"KiB", "MiB", "GiB"},
    "core/check.hpp": {"checks_callers", "checks_itself"},
    "core/poison.hpp": {"poisons", "poison", "unpoison", "reveal"},
    "core/parts.hpp": {"from"},
    "core/forwarding.hpp": {"forwards", "joint_stats", "reallocate_by_copy"},
    "allocator/block_range.hpp": {"merge"},
    "heap/figures.hpp": {"heap_figures", "class_figures"},
    "live.h": {"heapwright_live_" + name for name in ("start", "mark", "reset", "record_allocation", "record_free", "meter",
                                                      "open_meter", "set_meter", "close_meter")},
}

# What the front doors include and no program names.
HIDDEN = {"heap/malloc_heap.hpp", "platform/native.hpp"}

# Chapter: page: its headers. A page's introduction is the first paragraph of its first header,
# and the code or table below if it ends with a colon.
CHAPTERS = {
    "What all parts share": {
        "layout": ["core/layout.hpp", "core/bits.hpp"],
        "concepts": ["core/concepts.hpp"],
        "forwarding": ["core/forwarding.hpp", "core/parts.hpp"],
        "checks": ["core/check.hpp"],
        "poison": ["core/poison.hpp"],
        "text": ["core/text.hpp"],
        "lock": ["sync/lock.hpp"],
        "platform": ["platform/concept.hpp"],
        "kit": ["kit.hpp"],
    },
    "Sources": {
        "os_pages": ["source/os_pages.hpp"],
        "huge_pages": ["source/huge_pages.hpp"],
        "guard_pages": ["source/guard_pages.hpp"],
        "buffer": ["source/buffer.hpp"],
        "slab_memory": ["source/slab_memory.hpp"],
        "upstream": ["source/upstream.hpp"],
    },
    "Allocators": {
        "arena": ["allocator/arena.hpp"],
        "stack_arena": ["allocator/stack_arena.hpp"],
        "pool": ["allocator/pool.hpp"],
        "object_pool": ["allocator/object_pool.hpp"],
        "slab": ["allocator/slab.hpp"],
        "best_fit": ["allocator/best_fit.hpp", "allocator/block_range.hpp"],
    },
    "Combinators": {
        "fallback": ["combine/fallback.hpp"],
        "segregate": ["combine/segregate.hpp"],
        "bucketed": ["combine/bucketed.hpp"],
        "locked": ["combine/locked.hpp"],
        "cached": ["combine/cached.hpp"],
        "sharded": ["combine/sharded.hpp"],
        "metered": ["combine/metered.hpp"],
        "poisoned": ["combine/poisoned.hpp"],
        "guarded": ["combine/guarded.hpp"],
        "leak_checked": ["combine/leak_checked.hpp"],
    },
    "Adaptors": {
        "std_allocator": ["adapt/std_allocator.hpp"],
        "memory_resource": ["adapt/memory_resource.hpp"],
        "unique": ["adapt/unique.hpp"],
        "compact_copy": ["adapt/compact_copy.hpp"],
        "recycler": ["adapt/recycler.hpp"],
        "counted_new": ["adapt/counted_new.hpp"],
    },
    "The thread-caching heap": {
        "heap": ["heap.hpp", "heap/basic_heap.hpp"],
        "recipe": ["heap/recipe.hpp"],
        "size_classes": ["core/size_classes.hpp"],
        "heap_statistics": ["heap/heap_statistics.hpp"],
    },
    "The malloc, seen from a program and from outside": {
        "malloc": ["malloc/override/c.cpp", "malloc/override/glibc.cpp"],
        "process_record": ["malloc/process_record.hpp", "heap/figures.hpp"],
        "process_report": ["malloc/process_report.hpp"],
    },
    "The live view": {
        "live.h": ["live.h"],
        "live": ["live.hpp"],
    },
}


def all_headers():
    return sorted({header for pages in CHAPTERS.values() for headers in pages.values() for header in headers})


def place(project, header):
    """Public headers lie in include/heapwright; the malloc's entries have none of ours, and are read where they are defined."""
    public = project / "include/heapwright" / header
    return public if public.exists() else project / header
