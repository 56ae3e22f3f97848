// What macOS calls a zone: the functions through which its libraries and tools reach a malloc. Here
// that is an adaptation of any malloc which has
//
//   allocate(size), allocate_zeroed(size), allocate_aligned(size, alignment)    null: no memory
//   reallocate(p, usable, size)     of a block of its own
//   deallocate(p)                   false: no block of its own
//   usable_size(p)                  0: no block of its own. Fast, as the system asks each zone for
//                                   each pointer that it has to find the zone of
//   size_of_class(size)             usable bytes of a block that is asked for
//   page_size()
//   trim()                          gives back free memory; returns how much
//   held(), held_peak(), in_use()   bytes
//   for_each_block(f)               calls f(p, usable)
//   lock_all(), unlock_all(), after_fork_in_child()
//
// The system asks the zone for locks around fork, after all handlers that programs have given to
// pthread_atfork: those may call malloc.
//
// A block that is not this malloc's goes to `foreign(p)`, which knows what else there is.
#pragma once

#include <cstddef>
#include <cstring>

#include <malloc/malloc.h>

#include <heapwright/core/bits.hpp>
#include <heapwright/core/language.hpp>

namespace heapwright::process {

template <class Malloc>
class zone {
 public:
  /// `foreign`: has free(p) and realloc(p, size) for blocks of other zones.
  template <class Foreign>
  [[nodiscard]] static constexpr malloc_zone_t make(const char* name, malloc_introspection_t* introspection) noexcept {
    malloc_zone_t z{};
    z.size = [](malloc_zone_t*, const void* p) { return Malloc::usable_size(p); };
    z.malloc = [](malloc_zone_t*, std::size_t size) { return Malloc::allocate(size); };
    z.calloc = [](malloc_zone_t*, std::size_t count, std::size_t size) -> void* {
      std::size_t bytes;
      return __builtin_mul_overflow(count, size, &bytes) ? nullptr : Malloc::allocate_zeroed(bytes);
    };
    z.valloc = [](malloc_zone_t*, std::size_t size) { return Malloc::allocate_aligned(size, Malloc::page_size()); };
    z.free = [](malloc_zone_t*, void* p) { free<Foreign>(p); };
    z.realloc = [](malloc_zone_t*, void* p, std::size_t size) { return realloc<Foreign>(p, size); };
    z.destroy = [](malloc_zone_t*) {};  // blocks of the process outlive it
    z.zone_name = name;
    z.batch_malloc = [](malloc_zone_t*, std::size_t size, void** to, unsigned n) {
      unsigned done = 0;
      while (done < n && (to[done] = Malloc::allocate(size)) != nullptr) ++done;
      return done;
    };
    z.batch_free = [](malloc_zone_t*, void** blocks, unsigned n) {
      for (unsigned i = 0; i < n; ++i) {
        if (blocks[i] != nullptr) free<Foreign>(blocks[i]);
      }
    };
    z.introspect = introspection;
    z.version = 13;
    z.memalign = [](malloc_zone_t*, std::size_t alignment, std::size_t size) -> void* {
      return is_power_of_two(alignment) ? Malloc::allocate_aligned(size, alignment) : nullptr;
    };
    z.free_definite_size = [](malloc_zone_t*, void* p, std::size_t) { free<Foreign>(p); };
    z.pressure_relief = [](malloc_zone_t*, std::size_t) { return Malloc::trim(); };
    z.claimed_address = [](malloc_zone_t*, void* p) -> boolean_t { return Malloc::usable_size(p) != 0; };
    // The system calls this of the default zone for what it knows nothing of.
    z.try_free_default = [](malloc_zone_t*, void* p) { free<Foreign>(p); };
    return z;
  }

  [[nodiscard]] static constexpr malloc_introspection_t make_introspection() noexcept {
    malloc_introspection_t i{};
    i.enumerator = enumerate;
    i.good_size = [](malloc_zone_t*, std::size_t size) { return Malloc::size_of_class(size); };
    i.check = [](malloc_zone_t*) -> boolean_t { return 1; };
    i.print = [](malloc_zone_t*, boolean_t) {};
    i.log = [](malloc_zone_t*, void*) {};
    i.force_lock = [](malloc_zone_t*) { Malloc::lock_all(); };
    i.force_unlock = [](malloc_zone_t*) { Malloc::unlock_all(); };
    i.reinit_lock = [](malloc_zone_t*) { Malloc::after_fork_in_child(); };
    i.statistics = [](malloc_zone_t*, malloc_statistics_t* to) {
      to->blocks_in_use = 0;  // not counted
      to->size_in_use = Malloc::in_use();
      to->max_size_in_use = Malloc::held_peak();
      to->size_allocated = Malloc::held();
    };
    i.zone_locked = [](malloc_zone_t*) -> boolean_t { return 0; };
    return i;
  }

 private:
  template <class Foreign>
  static void free(void* p) noexcept {
    if (!Malloc::deallocate(p)) Foreign::free(p);
  }

  template <class Foreign>
  [[nodiscard]] static void* realloc(void* p, std::size_t size) noexcept {
    if (p == nullptr) return Malloc::allocate(size);
    const std::size_t usable = Malloc::usable_size(p);
    return usable != 0 ? Malloc::reallocate(p, usable, size) : Foreign::realloc(p, size);
  }

  /// Of the calling process alone: the blocks of another are found by no function of ours.
  static kern_return_t enumerate(task_t task, void* context, unsigned kinds, vm_address_t, memory_reader_t,
                                 vm_range_recorder_t record) {
    if (task != mach_task_self()) return KERN_NOT_SUPPORTED;
    if ((kinds & MALLOC_PTR_IN_USE_RANGE_TYPE) == 0) return KERN_SUCCESS;
    Malloc::for_each_block([&](const void* p, std::size_t usable) {
      vm_range_t block{reinterpret_cast<vm_address_t>(p), usable};
      record(task, context, MALLOC_PTR_IN_USE_RANGE_TYPE, &block, 1);
    });
    return KERN_SUCCESS;
  }
};

}  // namespace heapwright::process
