//! Alone in its process, whose memory it looks at.

use heapwright::Heap;
use std::alloc::Layout;

fn resident_pages() -> u64 {
    std::fs::read_to_string("/proc/self/statm").unwrap().split(' ').nth(1).unwrap().parse().unwrap()
}

#[test]
fn the_end_of_a_heap_gives_back_what_is_in_use() {
    let layout = Layout::from_size_align(64 << 20, 16).unwrap();
    let heap = Heap::new("short-lived");
    // SAFETY: the block is as long as the layout.
    unsafe { heap.allocate(layout).unwrap().as_ptr().write_bytes(1, layout.size()) };
    let with_it = resident_pages();
    drop(heap);
    assert!(resident_pages() + 15_000 < with_it);
}
