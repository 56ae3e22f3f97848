//! Heaps of a program's own, beside the system's malloc.

use heapwright::Heap;
use std::alloc::{GlobalAlloc, Layout};

/// After all blocks were freed.
fn assert_nothing_is_in_use(heap: &Heap) {
    // A hardened heap keeps freed blocks of many pages from being touched for a while.
    if cfg!(not(feature = "hardened")) {
        assert_eq!(heap.statistics().in_use, 0);
    }
}

fn kilobyte() -> Layout {
    Layout::from_size_align(1024, 16).unwrap()
}

#[test]
fn a_heap_ends_at_its_limit_and_goes_on_when_blocks_are_freed() {
    let heap = Heap::with_limit("small", 1 << 20);
    let mut blocks = Vec::new();
    while let Some(block) = heap.allocate(kilobyte()) {
        blocks.push(block);
        assert!(blocks.len() <= 1024, "beyond the limit");
    }
    assert!(blocks.len() > 700, "{} KiB of 1024", blocks.len());
    // SAFETY: they are blocks of this heap.
    blocks.drain(..).for_each(|block| unsafe { heap.deallocate(block, kilobyte()) });
    assert!(heap.allocate(kilobyte()).is_some());
    heap.set_limit(u64::MAX);
    assert!(heap.allocate(Layout::from_size_align(4 << 20, 4096).unwrap()).is_some());
}

#[test]
fn it_knows_its_blocks_its_name_and_its_figures() {
    let (one, other) = (Heap::new("one"), Heap::new("other"));
    assert_eq!((one.name(), format!("{other:?}")), ("one", String::from("Heap { name: \"other\", .. }")));
    let block = one.allocate(kilobyte()).unwrap();
    assert!(one.owns(block.as_ptr()) && !other.owns(block.as_ptr()) && !one.owns(&block));
    let statistics = one.statistics();
    assert!((1024..2048).contains(&statistics.in_use), "{statistics:?}");
    assert_eq!(statistics.held, statistics.in_use + statistics.free);
    assert_eq!(other.statistics().in_use, 0);
    // SAFETY: it is a block of this heap.
    unsafe { one.deallocate(block, kilobyte()) };
    assert_eq!(one.statistics().in_use, 0);
    assert!(one.trim() > 0);
    assert!(one.allocate(Layout::new::<()>()).is_none());
}

#[test]
#[should_panic(expected = "the name of a heap has no zero byte")]
fn a_name_with_a_zero_byte_is_refused() {
    Heap::new("a\0b");
}

#[test]
fn threads_share_a_heap() {
    let heap = Heap::new("shared");
    let (send, receive) = std::sync::mpsc::channel::<usize>();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            let (send, heap) = (send.clone(), &heap);
            scope.spawn(move || {
                for _ in 0..50_000 {
                    send.send(heap.allocate(kilobyte()).unwrap().as_ptr() as usize).unwrap();
                }
            });
        }
        drop(send);
        for block in receive {
            // SAFETY: it is a block of this heap, which its thread has left to this one.
            unsafe { heap.dealloc(block as *mut u8, kilobyte()) };
        }
    });
    assert_nothing_is_in_use(&heap);
}

#[test]
fn blocks_have_the_alignment_of_their_layout_and_keep_their_bytes_when_they_grow() {
    let heap = Heap::new("aligned");
    for alignment in (0..13).map(|n| 1usize << n) {
        for size in [1, 7, 8, 24, 100, 5000, 300_000] {
            let layout = Layout::from_size_align(size, alignment).unwrap();
            // SAFETY: the layouts are those of the blocks.
            unsafe {
                let zeroed = heap.alloc_zeroed(layout);
                assert_eq!(zeroed as usize % alignment, 0);
                assert!(std::slice::from_raw_parts(zeroed, size).iter().all(|&byte| byte == 0));
                zeroed.write_bytes(0xA5, size);
                let longer = heap.realloc(zeroed, layout, 3 * size);
                assert_eq!(longer as usize % alignment, 0);
                assert!(std::slice::from_raw_parts(longer, size).iter().all(|&byte| byte == 0xA5));
                heap.dealloc(longer, Layout::from_size_align(3 * size, alignment).unwrap());
            }
        }
    }
    assert_nothing_is_in_use(&heap);
}

#[cfg(feature = "allocator-api2")]
#[test]
fn vectors_and_boxes_have_their_memory_in_a_heap() {
    use allocator_api2::{boxed::Box, vec::Vec};
    let heap = Heap::with_limit("vectors", 4 << 20);
    let mut numbers = Vec::new_in(&heap);
    numbers.extend(0..100_000u32);
    assert!(heap.owns(numbers.as_ptr()));
    assert!(heap.owns(&*Box::new_in([7u8; 100], &heap)));
    assert!(numbers.iter().copied().eq(0..100_000));
    assert!(numbers.try_reserve(10_000_000).is_err(), "beyond the limit");
    let nothing: Vec<u8, &Heap> = Vec::new_in(&heap);
    drop((numbers, nothing));
    assert_nothing_is_in_use(&heap);
}
