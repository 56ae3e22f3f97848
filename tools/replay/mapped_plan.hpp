// A plan as it lies in its file, for those who look at what the program does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "plan.hpp"

namespace heapwright::tool {

class mapped_plan {
 public:
  /// Throws `failure` if it cannot be mapped. The descriptor may be closed afterwards.
  explicit mapped_plan(int descriptor);
  mapped_plan(const mapped_plan&) = delete;
  mapped_plan& operator=(const mapped_plan&) = delete;
  ~mapped_plan();

  [[nodiscard]] std::span<const std::byte> bytes() const noexcept {
    return {static_cast<const std::byte*>(at_), bytes_};
  }
  [[nodiscard]] const replay::plan_footer& footer() const noexcept { return footer_; }
  [[nodiscard]] std::span<const replay::operation> operations() const noexcept {
    return table<replay::operation>(0, footer_.operations);
  }
  [[nodiscard]] std::span<const replay::turn> turns() const noexcept {
    return table<replay::turn>(footer_.turns_at, footer_.turns);
  }
  [[nodiscard]] std::span<const replay::thread> threads() const noexcept {
    return table<replay::thread>(footer_.threads_at, footer_.threads);
  }
  [[nodiscard]] std::span<const replay::operation> operations_of(const replay::turn& t) const noexcept {
    return table<replay::operation>(t.first_operation * sizeof(replay::operation), t.operations);
  }

 private:
  template <class T>
  [[nodiscard]] std::span<const T> table(std::uint64_t at, std::uint64_t count) const noexcept {
    return {reinterpret_cast<const T*>(static_cast<const std::byte*>(at_) + at), count};
  }

  void* at_;
  std::size_t bytes_ = 0;
  replay::plan_footer footer_{};
};

}  // namespace heapwright::tool
