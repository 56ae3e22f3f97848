#include "sample_tracepoints.hpp"

#include <atomic>

#include "usdt.hpp"

extern "C" {
/// The kernel writes here, or a debugger. The tracepoint's note names it.
[[gnu::section(".probes"), gnu::visibility("hidden"), gnu::used]] constinit std::atomic<std::uint16_t>
    heapwright_free_semaphore{0};
}

namespace heapwright::probe {

[[gnu::noinline]] void tell_sampled(const void* p, std::uint64_t bytes, std::uint64_t weight) noexcept {
  register const void* first asm(HEAPWRIGHT_ARGUMENT_1) = p;
  register std::uint64_t second asm(HEAPWRIGHT_ARGUMENT_2) = bytes;
  register std::uint64_t third asm(HEAPWRIGHT_ARGUMENT_3) = weight;
  asm volatile(HEAPWRIGHT_TRACEPOINT("otel_memory", "alloc", "0", "8@%0 8@%1 8@%2")
               :
               : "r"(first), "r"(second), "r"(third));
}

[[gnu::noinline]] void tell_freed(const void* p) noexcept {
  register const void* first asm(HEAPWRIGHT_ARGUMENT_1) = p;
  asm volatile(HEAPWRIGHT_TRACEPOINT("otel_memory", "free", "heapwright_free_semaphore", "8@%0") : : "r"(first));
}

bool is_free_heard() noexcept { return heapwright_free_semaphore.load(std::memory_order_relaxed) != 0; }

}  // namespace heapwright::probe
