//! What calloc and realloc have no alignment for.

use std::alloc::{GlobalAlloc, Layout};

/// A block that reads as zero.
///
/// # Safety
/// As GlobalAlloc::alloc_zeroed.
pub unsafe fn cleared(by: &impl GlobalAlloc, layout: Layout) -> *mut u8 {
    // SAFETY: the caller's; the block is as long as the layout.
    unsafe {
        let block = by.alloc(layout);
        if !block.is_null() {
            block.write_bytes(0, layout.size());
        }
        block
    }
}

/// Another block with the contents of this one, which is freed. Null: no memory, it is as it was.
///
/// # Safety
/// As GlobalAlloc::realloc.
pub unsafe fn moved(by: &impl GlobalAlloc, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
    // SAFETY: the caller's: new_size, rounded up to the alignment, is no more than isize::MAX.
    unsafe {
        let other = by.alloc(Layout::from_size_align_unchecked(new_size, layout.align()));
        if !other.is_null() {
            other.copy_from_nonoverlapping(block, layout.size().min(new_size));
            by.dealloc(block, layout);
        }
        other
    }
}
