// Makes the segment of this process, and room in it.
//
// The file is sparse, and memory for a page of it may run out: then touching the page would kill
// the program (SIGBUS). So every page is made present before it is used, and what there is no page
// for is not recorded.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include <heapwright/platform/linux/linux_os.hpp>
#include <heapwright/sync/lock.hpp>

#include "../segment/segment.hpp"
#include "sampling_pace.hpp"

namespace heapwright::probe {

using process_lock = lock<linux_os>;

/// What the environment asks for: HEAPWRIGHT_PROBE=off or estimate, HEAPWRIGHT_SAMPLE=BYTES or
/// auto, HEAPWRIGHT_SEGMENT_DIR=DIR, HEAPWRIGHT_RECORD=1.
struct settings {
  std::uint32_t counting = segment::counting_is_on;  ///< as in segment_header
  bool is_recording = false;
  std::uint64_t interval = sampling_pace::finest | segment::interval_adapts;  ///< as in segment_header
  std::uint32_t interval_before_all = 0;                                      ///< as in segment_header, of the parent
  const char* directory = nullptr;                                            ///< null: /dev/shm/heapwright-UID
};

[[nodiscard]] settings read_settings(char** environment) noexcept;

/// A new segment of this process, header complete and slot 0 ready. It is mapped until the process
/// ends. Null, and errno, when it cannot be had.
[[nodiscard]] segment::segment_header* create_segment(const settings& of) noexcept;

/// For the recorder of a program that has no segment to say so in: a symbolic link PID.unrecorded,
/// which leads to the number of the error. It takes no descriptor, and has no length.
void leave_refusal(const settings& of, int error) noexcept;

/// Where the rings of this process's segment belong (recording.hpp).
[[nodiscard]] const char* rings_path() noexcept;

/// How many processes that have ended have left their rings beside those of this one. Their
/// recorder takes away the files that it has found.
[[nodiscard]] unsigned count_rings_of_ended() noexcept;

/// Whether the process may make a file as long (ulimit -f): to make a longer one would end it by
/// SIGXFSZ. Where it may not, errno is EFBIG.
[[nodiscard]] bool may_be_as_long(std::uint64_t bytes) noexcept;

template <class T>
[[nodiscard]] T* at_offset(segment::segment_header* s, std::uint64_t offset) noexcept {
  return reinterpret_cast<T*>(reinterpret_cast<std::byte*>(s) + offset);
}

[[nodiscard]] inline segment::thread_slot& slot_of(segment::segment_header* s, std::uint32_t i) noexcept {
  return *at_offset<segment::thread_slot>(s, s->threads_at + i * segment::thread_slot_bytes);
}

/// Makes the pages of this part present. False: there is no memory for them.
[[nodiscard]] bool make_present(void* begin, std::size_t bytes) noexcept;

/// A part of the segment that fills up from its beginning. Any number of threads may take from it.
class growing_part {
 public:
  /// All before `used` has been taken, and is present up to the next whole page.
  void reset(void* begin, std::size_t bytes, segment::counter* used) noexcept;

  /// `bytes` zero bytes, aligned to segment::reference_unit; null when the part is full or there is
  /// no memory.
  [[nodiscard]] void* take(std::size_t bytes) noexcept;

  [[nodiscard]] segment::reference refer(const void* p) const noexcept {
    return static_cast<segment::reference>((static_cast<const std::byte*>(p) - begin_) / segment::reference_unit + 1);
  }

  template <class T>
  [[nodiscard]] T* find(segment::reference r) const noexcept {
    return reinterpret_cast<T*>(begin_ + (r - std::size_t{1}) * segment::reference_unit);
  }

  /// 0 where there is no segment.
  [[nodiscard]] std::uint64_t used() const noexcept {
    return used_ == nullptr ? 0 : used_->load(std::memory_order_acquire);
  }
  [[nodiscard]] bool is_half_full() const noexcept { return used_->load(std::memory_order_relaxed) > bytes_ / 2; }
  [[nodiscard]] process_lock& fork_lock() noexcept { return lock_; }

 private:
  std::byte* begin_ = nullptr;
  std::size_t bytes_ = 0;
  segment::counter* used_ = nullptr;
  std::size_t present_ = 0;
  process_lock lock_;
};

}  // namespace heapwright::probe
