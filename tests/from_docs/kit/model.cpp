#include "model.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

// What malloc cannot give, it refuses: the tests ask for too much on purpose.
extern "C" const char* __asan_default_options() { return "allocator_may_return_null=1"; }
extern "C" const char* __tsan_default_options() { return "allocator_may_return_null=1"; }

namespace from_docs {
namespace {

constexpr std::size_t watched = 64;  // bytes on each side of an odd_buffer
constexpr auto untouched = std::byte{0xa5};

}  // namespace

void live_blocks::fill(const block& b, std::size_t from) const {
  if (b.asked.size > from) std::memset(b.at + from, b.mark, b.asked.size - from);
}

void live_blocks::add(void* p, layout asked) {
  ASSERT_NE(p, nullptr);
  EXPECT_TRUE(lies_at(p, asked.alignment)) << p << " for " << asked.size << " bytes at " << asked.alignment;
  auto* const at = static_cast<std::byte*>(p);
  const block b{at, asked, next_mark_};
  next_mark_ = next_mark_ == 255 ? 1 : next_mark_ + 1;
  if (asked.size > 0) {
    const auto behind = ranges_.lower_bound(at);
    if (behind != ranges_.end()) {
      EXPECT_LE(at + asked.size, behind->first) << "overlaps the next block";
    }
    if (behind != ranges_.begin()) {
      const auto& [before, size] = *std::prev(behind);
      EXPECT_GE(at, before + size) << "overlaps the block before";
    }
    ranges_.emplace(at, asked.size);
  }
  fill(b, 0);
  blocks_.push_back(b);
}

void live_blocks::look_at(std::size_t i) const {
  const block& b = blocks_[i];
  const std::size_t n = b.asked.size;  // all bytes are as the first one, quickly in unoptimised builds, too
  const bool is_intact = n == 0 || (b.at[0] == std::byte{b.mark} && std::memcmp(b.at, b.at + 1, n - 1) == 0);
  EXPECT_TRUE(is_intact) << "somebody has written to a block of " << b.asked.size << " bytes";
}

live_blocks::block live_blocks::remove(std::size_t i) {
  look_at(i);
  const block b = blocks_[i];
  if (b.asked.size > 0) ranges_.erase(b.at);
  blocks_.erase(blocks_.begin() + static_cast<std::ptrdiff_t>(i));
  return b;
}

void live_blocks::forget_from(std::size_t i) {
  for (std::size_t k = i; k < blocks_.size(); ++k) {
    if (blocks_[k].asked.size > 0) ranges_.erase(blocks_[k].at);
  }
  blocks_.resize(i, {});
}

void live_blocks::resized(std::size_t i, layout to) {
  block b = blocks_[i];
  const std::size_t before = b.asked.size;
  const auto mark = std::byte{b.mark};
  EXPECT_TRUE(std::all_of(b.at, b.at + std::min(before, to.size), [=](std::byte x) { return x == mark; }));
  EXPECT_TRUE(lies_at(b.at, to.alignment));
  if (before > 0) ranges_.erase(b.at);
  if (to.size > 0) {
    const auto behind = ranges_.lower_bound(b.at);
    if (behind != ranges_.end()) {
      EXPECT_LE(b.at + to.size, behind->first) << "has grown into the next block";
    }
    ranges_.emplace(b.at, to.size);
  }
  b.asked = to;
  fill(b, before);
  blocks_[i] = b;
}

std::size_t live_blocks::bytes() const {
  std::size_t sum = 0;
  for (const block& b : blocks_) sum += b.asked.size;
  return sum;
}

layouts any_layout(std::size_t largest, std::size_t most_aligned) {
  return [=](random_bits& random) {
    std::size_t alignment = 1;
    while (alignment < most_aligned && random() % 2 == 0) alignment *= 2;
    const std::size_t kind = random() % 8;
    const std::size_t size = kind == 0   ? 0
                             : kind == 1 ? 1
                             : kind == 2 ? random() % largest + 1
                                         : random() % std::min<std::size_t>(largest, 200) + 1;
    return layout{std::min(size, largest), alignment};
  };
}

layouts always(layout l) {
  return [=](random_bits&) { return l; };
}

std::size_t walk(const any_allocator& a, const layouts& next, order frees, unsigned steps, unsigned seed) {
  random_bits random(seed);
  live_blocks live;
  std::size_t got = 0;
  const auto free_one = [&] {
    const std::size_t which = frees == order::last_first    ? live.size() - 1
                              : frees == order::first_first ? 0
                                                            : random() % live.size();
    const auto b = live.remove(which);
    a.deallocate(b.at, b.asked);
  };
  for (unsigned i = 0; i < steps; ++i) {
    if (random() % 3 != 0 || live.empty()) {
      const layout l = next(random);
      if (void* const p = a.allocate(l)) {
        live.add(p, l);
        ++got;
      }
    } else {
      free_one();
    }
    if (::testing::Test::HasFatalFailure()) return got;
  }
  while (!live.empty()) free_one();
  a.deallocate(nullptr, next(random));  // "Null does nothing."
  return got;
}

strict_source::~strict_source() { EXPECT_EQ(live(), 0u) << "not given back to the source"; }

void* strict_source::allocate(layout l) noexcept {
  if (requests.size() >= limit || l.size > std::size_t{1} << 30) return nullptr;
  requests.push_back(l);
  const std::size_t alignment = std::max<std::size_t>(l.alignment, sizeof(void*));
  void* const p = std::aligned_alloc(alignment, round_up(std::max<std::size_t>(l.size, 1), alignment));
  live_.emplace(p, l);
  return p;
}

void strict_source::deallocate(void* p, layout l) noexcept {
  if (p == nullptr) return;
  const auto found = live_.find(p);
  ASSERT_NE(found, live_.end()) << "freed, but not allocated here";
  EXPECT_EQ(found->second.size, l.size) << "freed with another size";
  EXPECT_EQ(found->second.alignment, l.alignment) << "freed with another alignment";
  live_.erase(found);
  std::free(p);
}

std::size_t strict_source::live_bytes() const {
  std::size_t sum = 0;
  for (const auto& [p, l] : live_) sum += l.size;
  return sum;
}

std::size_t strict_source::largest_live() const {
  std::size_t largest = 0;
  for (const auto& [p, l] : live_) largest = std::max(largest, l.size);
  return largest;
}

odd_buffer::odd_buffer(std::size_t size, std::size_t offset)
    : memory_(size + offset + 2 * watched + 64, untouched), size_(size) {
  const auto at = reinterpret_cast<std::uintptr_t>(memory_.data() + watched);
  begin_ = memory_.data() + watched + (round_up(at, 64) - at) + offset;
}

odd_buffer::~odd_buffer() {
  const auto is_untouched = [](std::byte b) { return b == untouched; };
  EXPECT_TRUE(std::all_of(memory_.data(), begin_, is_untouched)) << "written before the buffer";
  EXPECT_TRUE(std::all_of(begin_ + size_, memory_.data() + memory_.size(), is_untouched))
      << "written behind the buffer";
}

}  // namespace from_docs
