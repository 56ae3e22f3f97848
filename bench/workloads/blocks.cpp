// Blocks by themselves: of one size and of many, in and out of order, zeroed, aligned, large,
// growing.
#include "workload.hpp"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

namespace workloads {
namespace {

std::uint64_t pair(std::uint64_t scale) {
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < scale * 30'000'000; ++i) {
    auto* p = filled(64);
    sum += p[0];
    std::free(p);
  }
  return sum;
}

enum class order { fifo, lifo, random };

template <order Order>
std::uint64_t batch(std::uint64_t scale) {
  random_engine random(1);
  std::vector<unsigned char*> held(1000);
  std::vector<std::size_t> sequence(held.size());
  for (std::size_t i = 0; i < sequence.size(); ++i) sequence[i] = Order == order::lifo ? sequence.size() - 1 - i : i;
  if (Order == order::random) std::shuffle(sequence.begin(), sequence.end(), random);
  std::uint64_t sum = 0;
  for (std::uint64_t round = 0; round < scale * 40'000; ++round) {
    for (auto& p : held) p = filled(32 + (round * 16 + static_cast<std::uint64_t>(&p - held.data())) % 15 * 16);
    for (std::size_t i : sequence) {
      sum += held[i][0];
      std::free(held[i]);
    }
  }
  return sum;
}

/// A working set in which a random block is replaced again and again.
std::uint64_t churn(std::uint64_t scale) {
  random_engine random(2);
  std::vector<std::pair<unsigned char*, std::size_t>> held(20'000);
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < scale * 8'000'000; ++i) {
    auto& [p, size] = held[random() % held.size()];
    if (p != nullptr) sum += p[size - 1];
    std::free(p);
    size = typical_size(random);
    p = filled(size);
  }
  for (auto& [p, size] : held) std::free(p);
  return sum;
}

/// All sizes up to 256 KiB, each power of two as often as the next.
std::uint64_t sizes(std::uint64_t scale) {
  random_engine random(8);
  std::vector<std::pair<unsigned char*, std::size_t>> held(3000);
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < scale * 3'000'000; ++i) {
    auto& [p, size] = held[random() % held.size()];
    if (p != nullptr) sum += p[size - 1];
    std::free(p);
    size = std::size_t{1} << random() % 18;
    size += random() % size;
    p = filled(size);
  }
  for (auto& [p, size] : held) std::free(p);
  return sum;
}

std::uint64_t aligned(std::uint64_t scale) {
  random_engine random(9);
  std::vector<unsigned char*> held(5000);
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < scale * 5'000'000; ++i) {
    auto& p = held[random() % held.size()];
    if (p != nullptr) sum += p[0];
    std::free(p);
    const std::size_t alignment = std::size_t{32} << random() % 8;
    const std::size_t size = (1 + random() % 4) * alignment;
    p = mark(std::aligned_alloc(alignment, size), size);
  }
  for (auto* p : held) std::free(p);
  return sum;
}

std::uint64_t callocs(std::uint64_t scale) {
  random_engine random(5);
  std::vector<unsigned char*> held(4000);
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < scale * 6'000'000; ++i) {
    auto& p = held[random() % held.size()];
    std::free(p);
    const std::size_t size = typical_size(random);
    p = static_cast<unsigned char*>(std::calloc(1, size));
    sum += p[size / 2];
    p[size / 2] = 1;
  }
  for (auto* p : held) std::free(p);
  return sum;
}

std::uint64_t reallocs(std::uint64_t scale) {
  std::uint64_t sum = 0;
  for (std::uint64_t round = 0; round < scale * 60; ++round) {
    char* text = nullptr;
    std::size_t size = 0;
    while (size < 8'000'000) {
      const std::size_t more = size / 16 + 24;
      text = static_cast<char*>(std::realloc(text, size + more));
      std::memset(text + size, 'x', more);
      size += more;
    }
    sum += static_cast<unsigned char>(text[size / 2]) + size;
    std::free(text);
  }
  return sum;
}

/// Buffers of 64 KiB to 16 MiB, a few alive at a time.
std::uint64_t buffers(std::uint64_t scale) {
  random_engine random(4);
  std::vector<std::pair<unsigned char*, std::size_t>> held(12);
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < scale * 6000; ++i) {
    auto& [p, size] = held[random() % held.size()];
    std::free(p);
    size = std::size_t{65536} << random() % 8;
    size += random() % size;
    p = filled(size);
    for (std::size_t at = 0; at < size; at += 4096) sum += p[at] = static_cast<unsigned char>(at >> 12);
  }
  for (auto& [p, size] : held) std::free(p);
  return sum;
}

constexpr workload all[] = {
    {"pair", pair, "one block of 64 bytes at a time"},
    {"fifo", batch<order::fifo>, "1000 blocks, freed in the same order"},
    {"lifo", batch<order::lifo>, "1000 blocks, freed in the opposite order"},
    {"random", batch<order::random>, "1000 blocks, freed in random order"},
    {"churn", churn, "a working set of 20,000 blocks, replaced at random"},
    {"sizes", sizes, "all sizes up to 256 KiB, replaced at random"},
    {"aligned", aligned, "blocks aligned to 32 to 4096 bytes"},
    {"callocs", callocs, "zeroed blocks, replaced at random"},
    {"reallocs", reallocs, "one text growing by realloc to 8 MB"},
    {"buffers", buffers, "buffers of 64 KiB to 16 MiB"},
};

}  // namespace

std::span<const workload> of_blocks() { return all; }

}  // namespace workloads
