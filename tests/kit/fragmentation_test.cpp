// How much memory best_fit needs for what is alive, beside first fit and next fit as dlmalloc's
// ancestors do it: blocks in the order of their addresses with a tag of 8 bytes, neighbours merged
// at once, the rest of a block cut off when it holds a block.
#include <heapwright/allocator/best_fit.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "support/best_fit_audit.hpp"

namespace heapwright {
namespace {

/// Only the addresses, from 0 upwards; no memory.
class fit_in_address_order {
 public:
  explicit fit_in_address_order(bool roves) : roves_(roves) {}

  std::size_t allocate(std::size_t bytes) {
    const std::size_t size = block_size(bytes);
    const auto begin = roves_ ? free_.lower_bound(rover_) : free_.begin();
    auto at = std::find_if(begin, free_.end(), [&](const auto& f) { return f.second >= size; });
    if (at == free_.end()) {
      at = std::find_if(free_.begin(), begin, [&](const auto& f) { return f.second >= size; });
      if (at == begin) return std::exchange(end_, end_ + size);
    }
    const auto [block, from] = *at;
    free_.erase(at);
    if (from - size >= smallest) free_[block + size] = from - size;
    rover_ = block + size;
    sizes_[block] = from - size >= smallest ? size : from;
    return block;
  }

  void deallocate(std::size_t block, std::size_t bytes) {
    const auto known = sizes_.find(block);
    std::size_t size = known == sizes_.end() ? block_size(bytes) : known->second;
    if (known != sizes_.end()) sizes_.erase(known);
    auto next = free_.lower_bound(block);
    if (next != free_.end() && next->first == block + size) {
      size += next->second;
      next = free_.erase(next);
    }
    if (next != free_.begin() && std::prev(next)->first + std::prev(next)->second == block) {
      block = std::prev(next)->first;
      size += std::prev(next)->second;
    }
    if (block + size == end_) {
      free_.erase(block);
      end_ = block;
    } else {
      free_[block] = size;
    }
  }

  [[nodiscard]] std::size_t extent() const { return end_; }

 private:
  static constexpr std::size_t smallest = 32;
  static std::size_t block_size(std::size_t bytes) { return std::max(align_up(bytes + 8, 16), smallest); }

  bool roves_;
  std::size_t rover_ = 0;
  std::size_t end_ = 0;
  std::map<std::size_t, std::size_t> free_;   ///< address: size
  std::map<std::size_t, std::size_t> sizes_;  ///< of live blocks that are larger than asked for, among others
};

template <merge Merging>
class fit_in_a_heap {
 public:
  std::size_t allocate(std::size_t bytes) {
    void* const p = heap_.allocate({bytes, 16});
    if (p == nullptr) throw std::bad_alloc();
    return address_of(p);
  }
  void deallocate(std::size_t block, std::size_t bytes) {
    heap_.deallocate(reinterpret_cast<void*>(block), {bytes, 16});
  }
  [[nodiscard]] std::size_t extent() const { return best_fit_audit<heap>::extent(heap_); }

 private:
  using heap = best_fit<best_fit_plan{.merging = Merging}>;
  std::vector<std::byte> memory_ = std::vector<std::byte>(64 * MiB);
  heap heap_{memory_};
};

struct request {
  std::size_t live_bytes;  ///< aimed at
  std::function<std::size_t(std::mt19937_64&)> size;
};

/// Bytes of the range that were used at most, per byte that was alive at most. After each phase all
/// but a tenth is freed, at random.
template <class Fit>
double bytes_per_byte(Fit&& fit, const std::vector<request>& phases, int rounds) {
  struct block {
    std::size_t at;
    std::size_t bytes;
  };
  std::mt19937_64 random(20);
  std::vector<block> live;
  std::size_t bytes = 0, most_bytes = 0, most_extent = 0;
  const auto free_one = [&] {
    std::swap(live[random() % live.size()], live.back());
    fit.deallocate(live.back().at, live.back().bytes);
    bytes -= live.back().bytes;
    live.pop_back();
  };
  for (const request& phase : phases) {
    for (int i = 0; i < rounds; ++i) {
      const std::size_t size = phase.size(random);
      while (!live.empty() && bytes + size > phase.live_bytes) free_one();
      live.push_back({fit.allocate(size), size});
      bytes += size;
      most_bytes = std::max(most_bytes, bytes);
      most_extent = std::max(most_extent, fit.extent());
    }
    while (bytes > phase.live_bytes / 10) free_one();
  }
  while (!live.empty()) free_one();
  return static_cast<double>(most_extent) / static_cast<double>(most_bytes);
}

std::function<std::size_t(std::mt19937_64&)> uniform(std::size_t from, std::size_t to) {
  return [=](std::mt19937_64& random) { return from + random() % (to - from + 1); };
}

/// As many of each power of two as of any other.
std::function<std::size_t(std::mt19937_64&)> logarithmic(double from, double to) {
  return [=](std::mt19937_64& random) {
    const double share = static_cast<double>(random() % 1'000'000) / 1e6;
    return static_cast<std::size_t>(from * std::pow(to / from, share));
  };
}

TEST(Fragmentation, LowerThanFirstFit) {
  // Where single blocks are a few per cent of all that is alive, first fit needs less: it fills
  // from below, so that the range shrinks again.
  const std::string few_large = "24 bytes to 1 MiB of 24";
  const std::vector<std::pair<std::string, std::vector<request>>> runs = {
      {"17-1024 bytes", {{2 * MiB, uniform(17, 1024)}}},
      {"24 bytes to 16 KiB", {{8 * MiB, logarithmic(24, 16 * KiB)}}},
      {"phases of growing sizes",
       {{2 * MiB, uniform(24, 64)},
        {2 * MiB, uniform(65, 512)},
        {2 * MiB, uniform(513, 4096)},
        {4 * MiB, uniform(4097, 32768)}}},
      {"phases of falling sizes",
       {{4 * MiB, uniform(4097, 32768)},
        {2 * MiB, uniform(513, 4096)},
        {2 * MiB, uniform(65, 512)},
        {2 * MiB, uniform(24, 64)}}},
      {few_large, {{24 * MiB, logarithmic(24, 1 * MiB)}}},
  };
  std::printf("%-26s%12s%12s%12s%12s\n", "bytes used per live byte", "best_fit", "deferred", "first fit", "next fit");
  for (const auto& [name, phases] : runs) {
    const int rounds = 60'000;
    const double best = bytes_per_byte(fit_in_a_heap<merge::immediate>(), phases, rounds);
    const double deferred = bytes_per_byte(fit_in_a_heap<merge::deferred>(), phases, rounds);
    const double first = bytes_per_byte(fit_in_address_order(false), phases, rounds);
    const double next = bytes_per_byte(fit_in_address_order(true), phases, rounds);
    std::printf("%-26s%12.3f%12.3f%12.3f%12.3f\n", name.c_str(), best, deferred, first, next);
    if (name != few_large) {
      EXPECT_LT(best, first) << name;
    }
    EXPECT_LT(best, next) << name;
  }
}

}  // namespace
}  // namespace heapwright
