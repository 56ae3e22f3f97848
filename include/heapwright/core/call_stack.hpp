// Call stacks for messages about mistakes: where a block was asked for, where it was freed. What
// cannot be named (core/linux/stack_frames.hpp) is shown as OBJECT+OFFSET, which
// `addr2line -e OBJECT OFFSET` understands.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <heapwright/core/named_frame.hpp>
#include <heapwright/core/text.hpp>
#ifdef _WIN32
#include <heapwright/core/windows/stack_frames.hpp>
#else
#include <heapwright/core/posix/capture_frames.hpp>
#ifdef __APPLE__
#include <heapwright/core/macos/stack_frames.hpp>
#else
#include <heapwright/core/linux/stack_frames.hpp>
#endif
#endif

namespace heapwright {

class call_stack {
 public:
  static constexpr unsigned most = 16;

  call_stack() noexcept = default;  ///< without frames

  /// The stack of the calling thread from the caller of this function on, the innermost frame
  /// first.
  [[nodiscard, gnu::noinline]] static call_stack here() noexcept {
    constexpr unsigned ours = 2;  // of capture, and of this function
    std::uintptr_t found[most + ours];
    const unsigned count = detail::stack_frames::capture(found, most + ours);
    return of(found + std::min(count, ours), count - std::min(count, ours));
  }

  /// Of `n` return addresses that were found otherwise, the innermost first.
  [[nodiscard]] static call_stack of(const std::uintptr_t* addresses, unsigned n) noexcept {
    call_stack s;
    s.count_ = std::min(n, most);
    for (unsigned i = 0; i < s.count_; ++i) s.frames_[i] = addresses[i];
    return s;
  }

  [[nodiscard]] bool empty() const noexcept { return count_ == 0; }

  friend bool operator==(const call_stack&, const call_stack&) noexcept = default;
  friend auto operator<=>(const call_stack&, const call_stack&) noexcept = default;

  /// Calls f(named_frame) for each frame, inlined ones too, the innermost first. False: no function
  /// has a name. Takes milliseconds. Allocates nothing.
  template <class F>
  bool for_each_named(F f) const noexcept {
    std::array<std::uintptr_t, most> calls;
    for (unsigned i = 0; i < count_; ++i) calls[i] = call(i);
    return detail::stack_frames::name(
        calls.data(), count_, [&](const named_frame& frame) { f(frame); }, [&](unsigned i) { without_name(i, f); });
  }

  /// Calls f(number, named_frame) for the program's own frame, as number 1, and for those outside
  /// of it up to main. False: there is no such frame.
  template <class F>
  bool for_each_own(F f) const noexcept {
    unsigned number = 0;
    bool is_past_main = false;
    for_each_named([&](const named_frame& frame) {
      if ((number > 0 || frame.is_own()) && !is_past_main) f(++number, frame);
      is_past_main = is_past_main || detail::is_same(frame.function, "main");
    });
    return number > 0;
  }

  /// Calls f(text) with a line for each of the program's own frames; or for all frames, without
  /// names, if none is its own.
  template <class F>
  void for_each_line(F f) const noexcept {
    if (for_each_own([&](unsigned number, const named_frame& frame) { f(line_of(number, frame)); })) return;
    for_each_raw_line(f);
  }

  /// Writes these lines.
  void write_to(int fd) const noexcept {
    for_each_line([fd](const text<1000>& line) { line.write_to(fd); });
  }

  /// Writes a line for each frame, without names.
  void write_raw(int fd) const noexcept {
    for_each_raw_line([fd](const text<1000>& line) { line.write_to(fd); });
  }

  static void write_frame(int fd, unsigned number, const named_frame& frame) noexcept {
    line_of(number, frame).write_to(fd);
  }

  /// A frame as OBJECT+OFFSET.
  [[nodiscard]] text<500> raw(unsigned i = 0) const noexcept { return detail::stack_frames::raw(call(i)); }

 private:
  template <class F>
  void for_each_raw_line(F f) const noexcept {
    for (unsigned i = 0; i < count_; ++i) {
      auto with_number = [&](const named_frame& frame) { f(line_of(i + 1, frame)); };
      without_name(i, with_number);
    }
  }

  static text<1000> line_of(unsigned number, const named_frame& frame) noexcept {
    text<1000> line;
    line.add("    #").add(std::uint64_t{number}).add(" ").add(frame.function);
    if (frame.has_line()) line.add(" ").add(frame.line);
    return line.add("\n");
  }

  /// The call instruction, which lies before the address that is returned to.
  [[nodiscard]] std::uintptr_t call(unsigned i) const noexcept { return frames_[i] - 1; }

  template <class F>
  void without_name(unsigned i, F& f) const noexcept {
    text<500> at = raw(i);
    f(named_frame{std::string_view(at.c_str(), at.size()), std::string_view()});
  }

  std::array<std::uintptr_t, most> frames_{};
  unsigned count_ = 0;
};

}  // namespace heapwright
