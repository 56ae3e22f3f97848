// A program's own side of `heapwright live`: live.h for C++, and how the kit's meters come to be
// seen.
#pragma once

#include <string>
#include <utility>

#include <heapwright/live.h>
#include <heapwright/combine/metered.hpp>
#include <heapwright/core/language.hpp>

namespace heapwright::live {

/// What came of starting the viewer.
struct viewer {
  int error = 0;    ///< an error number; what is wrong is on stderr
  std::string url;  ///< of the page, with its token if it has one

  /// Whether the page can be seen.
  explicit operator bool() const noexcept { return error == 0; }
};

/// See heapwright_live_start. Throws std::bad_alloc only.
inline viewer start(const std::string& host = "127.0.0.1", std::uint16_t port = 0) {
  char url[512] = "";
  const int error = heapwright_live_start(host.c_str(), port, url, sizeof url);
  return {error, url};
}

/// The peak begins again, from what is live. False: there is no probe.
inline bool reset() noexcept { return heapwright_live_reset() != 0; }

/// Names this moment. False: it was not kept, for want of a probe or of room.
inline bool mark(const char* name) noexcept { return heapwright_live_mark(name) != 0; }

/// See heapwright_live_record_allocation. In line, as the place that is shown is the caller's.
[[gnu::always_inline]] inline bool record_allocation(const void* p, std::size_t bytes) noexcept {
  return heapwright_live_record_allocation(p, bytes) != 0;
}

/// See heapwright_live_record_free.
[[gnu::always_inline]] inline void record_free(const void* p, std::size_t bytes) noexcept {
  heapwright_live_record_free(p, bytes);
}

/// For `metered<A, meter_report>`: shows its meter under a name, from `open` on. As thread-safe as
/// the metered itself: used by one thread at a time.
class meter_report {
 public:
  /// Shows nothing until open.
  meter_report() noexcept = default;
  meter_report(meter_report&& from) noexcept : number_(std::exchange(from.number_, -1)) {}
  meter_report& operator=(meter_report&& from) noexcept {
    std::swap(number_, from.number_);
    return *this;
  }
  ~meter_report() { heapwright_live_close_meter(number_); }

  /// False: there is no probe, or there are 64 meters already. Instead of the name it had before.
  bool open(const char* name) noexcept {
    heapwright_live_close_meter(number_);
    number_ = heapwright_live_open_meter(name);
    return number_ >= 0;
  }

  /// Shows these figures from now on. metered calls it.
  void update(const meter& m) const noexcept {
    if (number_ < 0) return;
    const heapwright_live_meter figures{m.allocations, m.deallocations, m.failures, m.total_bytes, m.in_use, m.peak};
    heapwright_live_set_meter(number_, &figures);
  }

 private:
  int number_ = -1;
};

}  // namespace heapwright::live
