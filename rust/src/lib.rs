#![doc = include_str!("../README.md")]

mod aligned;
mod heap;
mod malloc;

pub use heap::Heap;
pub use malloc::Malloc;

/// How much memory a malloc or a heap has, in bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// In blocks that are allocated, small ones rounded up to their size class; with the feature
    /// `hardened` also in freed long ones that are kept from being touched.
    pub in_use: u64,
    /// In free blocks and free pages, given back to the system or not.
    pub free: u64,
    /// Of `free`: in caches of threads.
    pub cached: u64,
    /// Of `free`: in free pages that are in memory; trimming gives them back.
    pub releasable: u64,
    /// Address space, for blocks in use and free.
    pub held: u64,
}
