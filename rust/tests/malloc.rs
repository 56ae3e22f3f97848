//! A program that has heapwright's malloc as its global allocator.

use heapwright::Malloc;
use std::alloc::{GlobalAlloc, Layout};
use std::collections::HashMap;

#[global_allocator]
static ALLOCATOR: Malloc = Malloc;

#[test]
fn a_program_with_threads_works() {
    let threads: Vec<_> = (0..8)
        .map(|t| {
            std::thread::spawn(move || {
                let mut map = HashMap::new();
                for i in 0..20_000u64 {
                    map.insert(i, vec![t as u8; (i % 300) as usize]);
                    if i % 3 == 0 {
                        map.remove(&(i / 2));
                    }
                }
                map
            })
        })
        .collect();
    // Each map is freed by another thread than the one that has allocated it.
    for (t, thread) in threads.into_iter().enumerate() {
        for (i, text) in thread.join().unwrap() {
            assert_eq!(text, vec![t as u8; (i % 300) as usize]);
        }
    }
}

#[test]
fn blocks_have_the_alignment_of_their_layout_and_keep_their_bytes_when_they_grow() {
    for alignment in (0..13).map(|n| 1usize << n) {
        for size in [1, 7, 8, 24, 100, 5000, 300_000] {
            let layout = Layout::from_size_align(size, alignment).unwrap();
            // SAFETY: the layouts are those of the blocks.
            unsafe {
                let zeroed = ALLOCATOR.alloc_zeroed(layout);
                assert_eq!(zeroed as usize % alignment, 0);
                assert!(std::slice::from_raw_parts(zeroed, size).iter().all(|&byte| byte == 0));
                zeroed.write_bytes(0xA5, size);
                let longer = ALLOCATOR.realloc(zeroed, layout, 3 * size);
                assert_eq!(longer as usize % alignment, 0);
                assert!(std::slice::from_raw_parts(longer, size).iter().all(|&byte| byte == 0xA5));
                let shorter = ALLOCATOR.realloc(longer, Layout::from_size_align(3 * size, alignment).unwrap(), 1);
                assert_eq!(shorter as usize % alignment, 0);
                assert_eq!(*shorter, 0xA5);
                ALLOCATOR.dealloc(shorter, Layout::from_size_align(1, alignment).unwrap());
            }
        }
    }
}

#[test]
fn a_request_beyond_all_memory_gets_null() {
    let layout = Layout::from_size_align(isize::MAX as usize - 4096, 16).unwrap();
    // SAFETY: the layout has a size.
    assert!(unsafe { ALLOCATOR.alloc(layout) }.is_null());
}

#[test]
fn statistics_tell_of_blocks_of_rust_and_of_c() {
    let before = Malloc::statistics().in_use;
    let of_rust = vec![1u8; 100 << 20];
    // SAFETY: it is freed below.
    let of_c = unsafe { libc::malloc(100 << 20) };
    assert!(!of_c.is_null());
    let between = Malloc::statistics();
    // Tests beside this one free less than 50 MiB meanwhile.
    assert!(between.in_use >= before + (150 << 20), "{before} {between:?}");
    assert!(between.held >= between.in_use);
    drop(of_rust);
    // SAFETY: as above.
    unsafe { libc::free(of_c) };
}

#[cfg(feature = "hardened")]
#[test]
fn a_block_that_is_freed_twice_ends_the_program_by_name() {
    use std::os::unix::process::ExitStatusExt;
    if std::env::var_os("MAKE_A_MISTAKE").is_some() {
        let layout = Layout::new::<[u64; 8]>();
        // SAFETY: there is none; the heap finds it.
        unsafe {
            let block = ALLOCATOR.alloc(layout);
            ALLOCATOR.dealloc(block, layout);
            ALLOCATOR.dealloc(block, layout);
        }
    }
    let ended = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "a_block_that_is_freed_twice_ends_the_program_by_name", "--nocapture"])
        .env("MAKE_A_MISTAKE", "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.signal(), Some(libc::SIGABRT), "{said}");
    assert!(said.contains("heapwright: double free: 0x"), "{said}");
}
