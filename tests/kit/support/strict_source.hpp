// A source that checks its callers: each range comes back once, with the layout it was asked for
// with, and all of them do. The n-th request fails when a test wants it to. Used as
// upstream<strict_source>.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdlib>
#include <map>
#include <new>

#include <heapwright/core/bits.hpp>
#include <heapwright/core/layout.hpp>
#include <heapwright/source/upstream.hpp>

namespace heapwright::testing {

class strict_source {
 public:
  strict_source() = default;
  strict_source(const strict_source&) = delete;
  strict_source& operator=(const strict_source&) = delete;
  ~strict_source() {
    EXPECT_TRUE(ranges_.empty()) << ranges_.size() << " ranges, " << held_ << " bytes did not come back";
  }

  [[nodiscard]] void* allocate(layout l) noexcept {
    EXPECT_TRUE(is_power_of_two(l.alignment));
    ++requests_;
    if (requests_ > allowed_) return nullptr;
    void* const p = ::operator new(l.size, std::align_val_t{l.alignment}, std::nothrow);
    if (p == nullptr) return nullptr;
    ranges_.emplace(p, l);
    held_ += l.size;
    return p;
  }

  void deallocate(void* p, layout l) noexcept {
    const auto found = ranges_.find(p);
    if (found == ranges_.end()) {
      ADD_FAILURE() << p << " did not come from here, or came back before";
      return;
    }
    EXPECT_EQ(found->second, l) << "came back with another layout";
    held_ -= found->second.size;
    ranges_.erase(found);
    ::operator delete(p, std::align_val_t{l.alignment});
  }

  /// After n more requests every one fails; SIZE_MAX: none does.
  void allow(std::size_t n) noexcept { allowed_ = n > SIZE_MAX - requests_ ? SIZE_MAX : requests_ + n; }

  [[nodiscard]] std::size_t held() const noexcept { return held_; }  ///< bytes
  [[nodiscard]] std::size_t ranges() const noexcept { return ranges_.size(); }
  [[nodiscard]] std::size_t requests() const noexcept { return requests_; }

 private:
  std::map<void*, layout> ranges_;
  std::size_t held_ = 0;
  std::size_t requests_ = 0;
  std::size_t allowed_ = SIZE_MAX;
};

}  // namespace heapwright::testing
