//! The process's malloc. These are the C functions of libheapwright.a, so C and C++ libraries of the
//! program are on it too, and so is `std::alloc::System`.

use crate::aligned::{cleared, moved};
use crate::Statistics;
use std::alloc::{GlobalAlloc, Layout};
use std::ffi::{c_int, c_void};

extern "C" {
    fn malloc(size: usize) -> *mut c_void;
    fn calloc(count: usize, size: usize) -> *mut c_void;
    fn realloc(block: *mut c_void, size: usize) -> *mut c_void;
    fn aligned_alloc(alignment: usize, size: usize) -> *mut c_void;
    fn free_sized(block: *mut c_void, size: usize);
    fn free_aligned_sized(block: *mut c_void, alignment: usize, size: usize);
    fn malloc_trim(pad: usize) -> c_int;
    fn mallinfo2() -> MallocInfo;
}

/// glibc's struct mallinfo2.
#[repr(C)]
struct MallocInfo {
    arena: usize,
    ordblks: usize,
    smblks: usize,
    hblks: usize,
    hblkhd: usize,
    usmblks: usize,
    fsmblks: usize,
    uordblks: usize,
    fordblks: usize,
    keepcost: usize,
}

/// What malloc aligns a block to that is at least as long; shorter ones are aligned to their size.
const NATURAL_ALIGNMENT: usize = 16;

fn is_natural(size: usize, alignment: usize) -> bool {
    alignment <= NATURAL_ALIGNMENT && alignment <= size
}

/// The malloc of libheapwright, for `#[global_allocator]`. It is the malloc of the whole process
/// then, of C libraries too.
///
/// Thread-safe. Null where there is no memory, or the request is beyond `isize::MAX`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Malloc;

impl Malloc {
    /// Where the bytes of the process's malloc are now. Other threads wait in malloc's slow steps
    /// meanwhile.
    pub fn statistics() -> Statistics {
        // SAFETY: it has no precondition.
        let figures = unsafe { mallinfo2() };
        Statistics {
            in_use: (figures.uordblks + figures.hblkhd) as u64,
            free: figures.fordblks as u64,
            cached: figures.fsmblks as u64,
            releasable: figures.keepcost as u64,
            held: (figures.arena + figures.hblkhd) as u64,
        }
    }

    /// Gives free memory back to the system. Whether there was any.
    pub fn trim() -> bool {
        // SAFETY: it has no precondition.
        unsafe { malloc_trim(0) != 0 }
    }
}

// SAFETY: malloc's blocks are as the layout says, and stay until they are freed.
unsafe impl GlobalAlloc for Malloc {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let (size, alignment) = (layout.size(), layout.align());
        // SAFETY: an alignment of a layout is a power of two.
        unsafe {
            if is_natural(size, alignment) { malloc(size) } else { aligned_alloc(alignment, size) }.cast()
        }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if is_natural(layout.size(), layout.align()) {
            // SAFETY: it has no precondition.
            return unsafe { calloc(1, layout.size()).cast() };
        }
        // SAFETY: the caller's.
        unsafe { cleared(self, layout) }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        let (size, alignment) = (layout.size(), layout.align());
        // SAFETY: the caller's: the block is one of this layout, which has come from alloc or realloc.
        unsafe {
            if is_natural(size, alignment) {
                free_sized(block.cast(), size)
            } else {
                free_aligned_sized(block.cast(), alignment, size)
            }
        }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        if is_natural(new_size, layout.align()) {
            // SAFETY: the caller's.
            return unsafe { realloc(block.cast(), new_size).cast() };
        }
        // SAFETY: the caller's.
        unsafe { moved(self, block, layout, new_size) }
    }
}
