// The segment of this very process, read without malloc.
#pragma once

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../segment/sample_weight.hpp"
#include "../../segment/segment.hpp"

namespace probe_test {

struct figures {
  struct {
    std::uint64_t allocations = 0, allocated_bytes = 0, requested_bytes = 0, frees = 0, freed_bytes = 0;
  } classes[heapwright::segment::size_scale::count];
  std::uint64_t live = 0, peak = 0, live_of_stacks = 0, at_peak_of_stacks = 0, live_of_samples = 0, live_samples = 0,
                sample_records = 0, thinned_samples = 0;
  std::uint64_t class_peak[heapwright::segment::size_scale::count]{};

  [[nodiscard]] std::uint64_t net() const noexcept {
    std::uint64_t n = 0;
    for (const auto& c : classes) n += c.allocated_bytes - c.freed_bytes;
    return n;
  }
};

class own_segment {
 public:
  /// The one with the highest number: of the program that runs now. HEAPWRIGHT_SEGMENT_DIR says
  /// where.
  own_segment() {
    const char* const directory = std::getenv("HEAPWRIGHT_SEGMENT_DIR");
    char path[512] = "", prefix[32];
    // What of /proc would do, without opendir, which calls malloc.
    const int prefix_length = std::snprintf(prefix, sizeof prefix, "%d-", ::getpid());
    const int fd = directory == nullptr ? -1 : ::open(directory, O_RDONLY | O_DIRECTORY);
    alignas(8) char entries[32768];
    int best = -1;
    for (long n = 0; fd >= 0 && (n = ::getdents64(fd, entries, sizeof entries)) > 0;) {
      for (long at = 0; at < n;) {
        const auto* const e = reinterpret_cast<const dirent64*>(entries + at);
        at += e->d_reclen;
        if (std::strncmp(e->d_name, prefix, static_cast<std::size_t>(prefix_length)) != 0) continue;
        const int number = std::atoi(std::strchr(e->d_name + prefix_length, '-') + 1);
        if (number <= best) continue;
        best = number;
        std::snprintf(path, sizeof path, "%s/%s", directory, e->d_name);
      }
    }
    if (fd >= 0) ::close(fd);
    const int file = ::open(path, O_RDWR);
    struct stat is {};
    if (file < 0 || ::fstat(file, &is) != 0) {
      std::fprintf(stderr, "no segment of this process in %s\n", directory == nullptr ? "(nowhere)" : directory);
      std::_Exit(2);
    }
    base_ = static_cast<std::byte*>(
        ::mmap(nullptr, static_cast<std::size_t>(is.st_size), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
    ::close(file);
  }

  [[nodiscard]] heapwright::segment::segment_header& header() const noexcept {
    return *reinterpret_cast<heapwright::segment::segment_header*>(base_);
  }

  [[nodiscard]] const std::byte* base() const noexcept { return base_; }
  void reset_peak() const noexcept { header().reset.fetch_add(1); }
  /// Of a live block that was sampled; else null.
  [[nodiscard]] const heapwright::segment::sample* sample_of(const void* block) const noexcept {
    using heapwright::segment::sample;
    for (std::uint64_t at = 0; at < header().samples_used; at += sizeof(sample)) {
      const auto& s = *reinterpret_cast<const sample*>(base_ + header().samples_at + at);
      if (sample::address_of(s.address_and_interval) == reinterpret_cast<std::uintptr_t>(block)) return &s;
    }
    return nullptr;
  }
  [[nodiscard]] const heapwright::segment::stack* stack_of(const void* block) const noexcept {
    const heapwright::segment::sample* const s = sample_of(block);
    if (s == nullptr) return nullptr;
    return reinterpret_cast<const heapwright::segment::stack*>(
        base_ + header().stacks_at + (s->at_stack - std::uint64_t{1}) * heapwright::segment::reference_unit);
  }

  [[nodiscard]] std::uint64_t forked_from() const noexcept { return header().forked_from; }

  [[nodiscard]] std::uint64_t peak_of_thread(pid_t id) const noexcept {
    using namespace heapwright::segment;
    const segment_header& h = header();
    for (std::uint32_t i = 1; i < h.thread_slots; ++i) {
      const auto& s = *reinterpret_cast<const thread_slot*>(base_ + h.threads_at + i * thread_slot_bytes);
      if (s.thread_id == static_cast<std::uint32_t>(id)) return s.peak_net;
    }
    return 0;
  }

  [[nodiscard]] bool is_of_samples() const noexcept {
    return (header().counting.load() & heapwright::segment::counting_is_of_samples) != 0;
  }

  [[nodiscard]] figures read() const noexcept {
    using namespace heapwright::segment;
    figures f;
    const segment_header& h = header();
    for (std::uint32_t i = 0; i < h.thread_slots; ++i) {
      const auto& s = *reinterpret_cast<const thread_slot*>(base_ + h.threads_at + i * thread_slot_bytes);
      if (s.state == static_cast<std::uint32_t>(slot_state::unused)) break;
      f.live += i == 0 ? 0 : s.net_bytes - published_net(s);  // what it has not published
      for (unsigned c = 0; c < size_scale::count; ++c) {
        f.classes[c].allocations += s.classes[c].allocations;
        f.classes[c].allocated_bytes += s.classes[c].allocated_bytes;
        f.classes[c].requested_bytes += s.classes[c].requested_bytes;
        f.classes[c].frees += s.classes[c].frees;
        f.classes[c].freed_bytes += s.classes[c].freed_bytes;
      }
    }
    if (is_of_samples()) {
      for (auto& c : f.classes) {
        c.allocations /= 1024;
        c.frees /= 1024;
      }
    }
    for (std::uint64_t at = 0; at < h.stacks_used;) {
      const auto& s = *reinterpret_cast<const stack*>(base_ + h.stacks_at + at);
      const std::uint64_t live = s.counters.allocated_bytes - s.counters.freed_bytes + s.counters.thinned_bytes;
      f.live_of_stacks += live;
      const bool has_changed_since = s.counters.peak_number == h.peak_number;
      f.at_peak_of_stacks += has_changed_since ? s.counters.at_peak.load() : live;
      f.live_samples += s.counters.samples - s.counters.thinned_samples - s.counters.freed_samples;
      f.thinned_samples += s.counters.thinned_samples;
      at += stack_length(s.depth);
    }
    for (std::uint64_t at = 0; at < h.samples_used; at += sizeof(sample)) {
      const auto& s = *reinterpret_cast<const sample*>(base_ + h.samples_at + at);
      const std::uint64_t of = s.address_and_interval;
      if (of == 0) continue;
      ++f.sample_records;
      const auto interval = sampling_interval::of_code(static_cast<std::uint16_t>(of >> sample::address_bits));
      f.live_of_samples += weight_of(s.bytes, interval.bytes()).bytes;
    }
    f.live += h.live;
    f.peak = h.peak;
    for (unsigned c = 0; c < size_scale::count; ++c) f.class_peak[c] = h.class_peak[c];
    return f;
  }

 private:
  std::byte* base_ = nullptr;
};

}  // namespace probe_test
