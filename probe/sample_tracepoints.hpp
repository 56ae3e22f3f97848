// Tracepoints by which tools outside the process follow the samples. OpenTelemetry's eBPF profiler
// listens to them.
//
//   otel_memory:alloc(pointer, bytes, weight)   a block was sampled
//   otel_memory:free(pointer)                   a sampled block is freed
//
// The weight is the bytes that the sample stands for, without bias. Sums of weights are what was
// allocated; without the weights of freed blocks they are what is live.
//
// Contract: design-docs/00003-memory-profiling of open-telemetry/opentelemetry-ebpf-profiler.
#pragma once

#include <cstdint>

namespace heapwright::probe {

/// Call it before another thread can have the block.
void tell_sampled(const void* p, std::uint64_t bytes, std::uint64_t weight) noexcept;

/// Call it for samples alone. Tools pass over a block that they do not know, such as one that the
/// parent sampled before a fork.
void tell_freed(const void* p) noexcept;

/// Whether a tool listens to otel_memory:free. Of a tool that does not increment the semaphore
/// nothing is known.
[[nodiscard]] bool is_free_heard() noexcept;

}  // namespace heapwright::probe
