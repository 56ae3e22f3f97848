// A workload does one kind of work, the same under every allocator, and returns a checksum of what
// it wrote. Everything allocated is written to; nothing measures itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <span>
#include <string_view>

namespace workloads {

struct workload {
  std::string_view name;
  std::uint64_t (*run)(std::uint64_t scale);
  std::string_view what;
};

std::span<const workload> of_blocks();
std::span<const workload> of_structures();
std::span<const workload> of_threads();

using random_engine = std::minstd_rand;

/// Sizes as programs ask for them: mostly small, a long tail.
inline std::size_t typical_size(random_engine& random) {
  const auto r = random();
  if (r % 1000 == 0) return 8192 + random() % 60'000;
  if (r % 50 == 0) return 1024 + random() % 7000;
  if (r % 5 == 0) return 128 + random() % 900;
  return 8 + random() % 120;
}

inline unsigned char* mark(void* block, std::size_t size) {
  auto* p = static_cast<unsigned char*>(block);
  if (p == nullptr) std::abort();
  p[0] = p[size - 1] = static_cast<unsigned char>(size);
  return p;
}

inline unsigned char* filled(std::size_t size) { return mark(std::malloc(size), size); }

}  // namespace workloads
