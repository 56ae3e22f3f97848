// A segment made by hand, in a temporary file: laid out as the format says, with small parts, and
// filled by the test.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sample_weight.hpp"
#include "segment.hpp"

namespace heapwright::segment {

/// A folder that goes with its content.
class scratch_folder {
 public:
  scratch_folder() {
    std::string name = (std::filesystem::temp_directory_path() / "heapwright-segment-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
    path_ = name;
  }
  scratch_folder(const scratch_folder&) = delete;
  scratch_folder& operator=(const scratch_folder&) = delete;
  ~scratch_folder() { std::filesystem::remove_all(path_); }

  [[nodiscard]] std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

 private:
  std::filesystem::path path_;
};

class segment_builder {
 public:
  static constexpr std::uint32_t slots = 8, buckets = 16;
  static constexpr std::size_t stack_bytes = 32 * 1024, sample_bytes = 8 * 1024, code_record_bytes = 8 * 1024;

  explicit segment_builder(std::filesystem::path path) : path_(std::move(path)) {
    const auto place = [this](std::uint64_t bytes) {
      const std::uint64_t at = bytes_;
      bytes_ = (at + bytes + 4095) / 4096 * 4096;
      return at;
    };
    place(modules_at + max_modules * sizeof(module));
    const std::uint64_t misuse_reports = place(max_misuse_reports * sizeof(misuse_report));
    const std::uint64_t codes = place(code_record_bytes);
    const std::uint64_t threads = place(slots * thread_slot_bytes), index = place(buckets * sizeof(reference));
    const std::uint64_t stacks = place(stack_bytes), sample_index = place(buckets * sizeof(reference));
    const std::uint64_t samples = place(sample_bytes);

    const int fd = ::open(path_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, static_cast<off_t>(bytes_)) != 0) throw std::runtime_error("no temporary file");
    base_ = static_cast<std::byte*>(mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
    ::close(fd);
    segment_header& h = header();
    h.magic = segment_magic;
    h.version = segment_version;
    h.header_bytes = sizeof h;
    h.process_id = 1234;
    h.state = static_cast<std::uint32_t>(process_state::running);
    h.bytes = bytes_;
    h.misuse_reports_at = misuse_reports;
    h.codes_at = codes;
    h.threads_at = threads;
    h.stack_index_at = index;
    h.stacks_at = stacks;
    h.sample_index_at = sample_index;
    h.samples_at = samples;
    h.thread_slots = slots;
    h.stack_buckets = h.sample_buckets = buckets;
    h.class_count = size_scale::count;
    slot(0).state = static_cast<std::uint32_t>(slot_state::everyone);
  }
  segment_builder(const segment_builder&) = delete;
  segment_builder& operator=(const segment_builder&) = delete;
  ~segment_builder() { munmap(base_, bytes_); }

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }
  [[nodiscard]] segment_header& header() noexcept { return *at<segment_header>(0); }
  [[nodiscard]] thread_slot& slot(std::uint32_t i) noexcept {
    return *at<thread_slot>(header().threads_at + i * thread_slot_bytes);
  }

  thread_slot& add_thread(std::uint32_t i, std::uint32_t thread_id, slot_state state = slot_state::alive) noexcept {
    thread_slot& s = slot(i);
    s.state = static_cast<std::uint32_t>(state);
    s.thread_id = thread_id;
    return s;
  }

  module& add_module() noexcept { return at<module>(modules_at)[header().modules_used.fetch_add(1)]; }

  /// A mistake of the program, with a report.
  misuse_report& add_misuse_report(std::uint64_t at_ns, const std::string& text) noexcept {
    header().mistakes += 1;
    misuse_report& r = at<misuse_report>(header().misuse_reports_at)[header().misuse_reports_used.fetch_add(1)];
    r.at_ns = at_ns;
    r.thread_id = 7;
    r.mistakes = 1;
    std::memcpy(r.text.data(), text.data(), text.size());
    r.length = static_cast<std::uint32_t>(text.size());
    return r;
  }

  /// Complete, but for what says so where `lines` is none.
  reference add_code(const std::string& name, const std::string& file, const std::string& table,
                     line_table lines) noexcept {
    const std::uint64_t at_byte =
        header().codes_used.fetch_add(interpreted_code_length(name.size(), file.size(), table.size()));
    interpreted_code& c = *at<interpreted_code>(header().codes_at + at_byte);
    c.first_line = 5;
    c.name_bytes = static_cast<std::uint32_t>(name.size());
    c.file_bytes = static_cast<std::uint32_t>(file.size());
    c.table_bytes = static_cast<std::uint32_t>(table.size());
    const std::string text = name + file + table;
    std::memcpy(reinterpret_cast<std::byte*>(&c) + sizeof c, text.data(), text.size());
    c.lines = static_cast<std::uint32_t>(lines);
    return static_cast<reference>(at_byte / reference_unit + 1);
  }
  interpreted_code& code_at(reference r) noexcept {
    return *at<interpreted_code>(header().codes_at + (r - 1) * reference_unit);
  }

  /// Room for a stack, all zero.
  reference take_stack(std::size_t depth) noexcept {
    const std::uint64_t used = header().stacks_used;
    header().stacks_used += stack_length(depth);
    return static_cast<reference>(used / reference_unit + 1);
  }
  stack& stack_at(reference r) noexcept { return *at<stack>(header().stacks_at + (r - 1) * reference_unit); }

  /// Its number.
  std::uint32_t add_thread_name(const std::string& name) noexcept {
    const std::uint64_t n = header().thread_names_used++;
    std::memcpy(header().thread_names[n].data(), name.data(), std::min(name.size(), sizeof(thread_name)));
    return static_cast<std::uint32_t>(n + 1);
  }

  /// Complete, and first in its chain.
  reference add_stack(std::uint64_t hash, const std::vector<std::uint64_t>& addresses, std::uint32_t owner = 0,
                      std::uint32_t name_of_threads = 0) noexcept {
    const reference r = take_stack(addresses.size());
    stack& s = stack_at(r);
    s.hash = hash;
    s.owner = owner;
    s.name_of_threads = name_of_threads;
    s.depth = static_cast<std::uint32_t>(addresses.size());
    std::memcpy(reinterpret_cast<std::byte*>(&s) + sizeof s, addresses.data(), addresses.size() * 8);
    s.next = bucket(hash).exchange(r);
    return r;
  }
  std::atomic<reference>& bucket(std::uint64_t hash) noexcept {
    return at<std::atomic<reference>>(header().stack_index_at)[hash % buckets];
  }

  sample& add_sample(std::uint64_t address, reference at_stack, std::uint64_t interval = 1) noexcept {
    sample& s = *at<sample>(header().samples_at + header().samples_used.fetch_add(sizeof(sample)));
    const std::uint64_t code = sampling_interval(interval).code();
    s.address_and_interval = address | code << sample::address_bits;
    s.at_stack = at_stack;
    return s;
  }

  [[nodiscard]] std::string bytes() const { return {reinterpret_cast<const char*>(base_), bytes_}; }

 private:
  template <class T>
  T* at(std::uint64_t offset) noexcept {
    return reinterpret_cast<T*>(base_ + offset);
  }

  std::filesystem::path path_;
  std::byte* base_ = nullptr;
  std::uint64_t bytes_ = 0;
};

template <std::size_t Size>
void set_text(std::array<char, Size>& to, const std::string& text) {
  std::memcpy(to.data(), text.data(), std::min(text.size(), Size));
}

}  // namespace heapwright::segment
