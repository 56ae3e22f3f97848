//! Heaps beside the malloc.

use crate::aligned::{cleared, moved};
use crate::Statistics;
use std::alloc::{GlobalAlloc, Layout};
use std::ffi::{c_char, c_void, CStr, CString};
use std::fmt;
use std::ptr::NonNull;

/// A heap in C++, src/heap.cpp.
#[repr(C)]
struct RawHeap {
    opaque: [u8; 0],
}

extern "C" {
    fn heapwright_rust_heap_new(name: *const c_char, limit: u64) -> *mut RawHeap;
    fn heapwright_rust_heap_delete(heap: *mut RawHeap);
    fn heapwright_rust_allocate(heap: *mut RawHeap, size: usize, alignment: usize) -> *mut c_void;
    fn heapwright_rust_allocate_zeroed(heap: *mut RawHeap, size: usize) -> *mut c_void;
    fn heapwright_rust_deallocate(heap: *mut RawHeap, block: *mut c_void, size: usize, alignment: usize);
    fn heapwright_rust_reallocate(heap: *mut RawHeap, block: *mut c_void, size: usize) -> *mut c_void;
    fn heapwright_rust_owns(heap: *const RawHeap, p: *const c_void) -> bool;
    fn heapwright_rust_trim(heap: *mut RawHeap) -> usize;
    fn heapwright_rust_set_limit(heap: *mut RawHeap, bytes: u64);
    fn heapwright_rust_heap_statistics(heap: *mut RawHeap) -> Statistics;
}

/// A heap of one's own beside the malloc: with a name, a limit and statistics of its own, and an
/// end, at which all its memory goes back to the system at once, whatever is still in use.
///
/// Thread-safe: each thread has a cache in it. Blocks are freed by any thread. A heap without
/// blocks takes a few KiB of memory, and a MiB of address space.
///
/// ```
/// use heapwright::Heap;
/// use std::alloc::Layout;
///
/// let parser = Heap::with_limit("parser", 64 << 20);
/// let block = parser.allocate(Layout::new::<[u64; 100]>()).expect("below the limit");
/// assert!(parser.owns(block.as_ptr()));
/// assert!(parser.statistics().in_use >= 800);
/// ```
pub struct Heap {
    heap: NonNull<RawHeap>,
    name: CString,
}

// SAFETY: the recipe is one of a heap for several threads.
unsafe impl Send for Heap {}
unsafe impl Sync for Heap {}

impl Heap {
    /// Without a limit of its own. Panics where there is no memory for it, or the name has a zero
    /// byte.
    pub fn new(name: &str) -> Heap {
        Heap::with_limit(name, u64::MAX)
    }

    /// `bytes`: of what it has in memory for blocks, free ones included. Beyond them there is no
    /// memory. Panics as `new`.
    pub fn with_limit(name: &str, bytes: u64) -> Heap {
        let name = CString::new(name).expect("the name of a heap has no zero byte");
        // SAFETY: the name lives as long as the heap.
        let heap = unsafe { heapwright_rust_heap_new(name.as_ptr(), bytes) };
        Heap { heap: NonNull::new(heap).expect("there is memory for a heap"), name }
    }

    /// As given to `new`.
    pub fn name(&self) -> &str {
        CStr::to_str(&self.name).expect("it came as a str")
    }

    /// A block, which is not initialized. None: no memory, the limit is reached, or the size is 0.
    /// It stays until it is deallocated, or the heap ends.
    pub fn allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
        if layout.size() == 0 {
            return None;
        }
        // SAFETY: the heap is there, and a layout's alignment is a power of two.
        NonNull::new(unsafe { heapwright_rust_allocate(self.raw(), layout.size(), layout.align()) }.cast())
    }

    /// Frees a block.
    ///
    /// # Safety
    /// The block is one of this heap, of this layout, and is not used any more.
    pub unsafe fn deallocate(&self, block: NonNull<u8>, layout: Layout) {
        // SAFETY: the caller's.
        unsafe { heapwright_rust_deallocate(self.raw(), block.as_ptr().cast(), layout.size(), layout.align()) }
    }

    /// True for a pointer into a live block of this heap. Any pointer will do. O(1).
    pub fn owns<T>(&self, p: *const T) -> bool {
        // SAFETY: the heap is there; p is not read through.
        unsafe { heapwright_rust_owns(self.raw(), p.cast()) }
    }

    /// Gives back to the system what is free and not in another thread's cache. Returns the bytes.
    pub fn trim(&self) -> usize {
        // SAFETY: the heap is there.
        unsafe { heapwright_rust_trim(self.raw()) }
    }

    /// Bytes in memory for blocks from now on. Blocks in use stay.
    pub fn set_limit(&self, bytes: u64) {
        // SAFETY: the heap is there.
        unsafe { heapwright_rust_set_limit(self.raw(), bytes) }
    }

    /// Where the bytes of the heap are now. Other threads wait in its slow steps meanwhile.
    pub fn statistics(&self) -> Statistics {
        // SAFETY: the heap is there.
        unsafe { heapwright_rust_heap_statistics(self.raw()) }
    }

    fn raw(&self) -> *mut RawHeap {
        self.heap.as_ptr()
    }
}

impl Drop for Heap {
    /// Gives all memory back, that of blocks in use too.
    fn drop(&mut self) {
        // SAFETY: nobody else has the heap.
        unsafe { heapwright_rust_heap_delete(self.raw()) }
    }
}

impl fmt::Debug for Heap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Heap").field("name", &self.name()).finish_non_exhaustive()
    }
}

/// A heap for allocator interfaces that are made on `GlobalAlloc`.
// SAFETY: blocks are as their layouts say, and stay until they are freed or the heap ends.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.allocate(layout).map_or(std::ptr::null_mut(), NonNull::as_ptr)
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if layout.align() <= 16 {
            // SAFETY: the heap is there.
            return unsafe { heapwright_rust_allocate_zeroed(self.raw(), layout.size()).cast() };
        }
        // SAFETY: the caller's.
        unsafe { cleared(self, layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller's.
        unsafe { heapwright_rust_deallocate(self.raw(), block.cast(), layout.size(), layout.align()) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        if layout.align() <= 16 {
            // SAFETY: the caller's.
            return unsafe { heapwright_rust_reallocate(self.raw(), block.cast(), new_size).cast() };
        }
        // SAFETY: the caller's.
        unsafe { moved(self, block, layout, new_size) }
    }
}

#[cfg(feature = "allocator-api2")]
mod allocator {
    use super::Heap;
    use allocator_api2::alloc::{AllocError, Allocator, Layout};
    use std::alloc::GlobalAlloc;
    use std::ptr::NonNull;

    fn bytes(block: *mut u8, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
        let block = NonNull::new(block).ok_or(AllocError)?;
        Ok(NonNull::slice_from_raw_parts(block, layout.size()))
    }

    fn of_no_bytes(layout: Layout) -> NonNull<[u8]> {
        let place = NonNull::new(std::ptr::without_provenance_mut(layout.align())).expect("an alignment is not zero");
        NonNull::slice_from_raw_parts(place, 0)
    }

    // SAFETY: blocks stay valid until the heap ends, wherever it is moved to.
    unsafe impl Allocator for Heap {
        fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
            if layout.size() == 0 {
                return Ok(of_no_bytes(layout));
            }
            // SAFETY: the layout has a size.
            bytes(unsafe { self.alloc(layout) }, layout)
        }

        fn allocate_zeroed(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
            if layout.size() == 0 {
                return Ok(of_no_bytes(layout));
            }
            // SAFETY: the layout has a size.
            bytes(unsafe { self.alloc_zeroed(layout) }, layout)
        }

        unsafe fn deallocate(&self, block: NonNull<u8>, layout: Layout) {
            if layout.size() != 0 {
                // SAFETY: the caller's.
                unsafe { self.dealloc(block.as_ptr(), layout) }
            }
        }
    }
}
