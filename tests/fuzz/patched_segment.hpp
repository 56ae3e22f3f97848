// A segment in a file, with parts overwritten as the input says: 12 bytes for each change.
//
//   byte 0      what is changed: the header, its numbers, a thread's slot, the modules, the misuse
//               reports, interpreted code, one of the four tables; or where the file is cut off
//   byte 1      how many bytes of the value are written: 1 to 8
//   bytes 2, 3  where, from the beginning of that part
//   bytes 4-11  the value
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "scratch_file.hpp"
#include "segment_builder.hpp"

namespace heapwright::fuzzing {

class patched_segment {
 public:
  patched_segment() {
    segment::scratch_folder folder;
    segment::segment_builder built(folder / "segment");
    fill(built);
    whole_ = built.bytes();
    const segment::segment_header& h = built.header();
    parts_ = {0,
              offsetof(segment::segment_header, bytes),
              h.threads_at,
              segment::modules_at,
              h.misuse_reports_at,
              h.codes_at,
              h.stack_index_at,
              h.stacks_at,
              h.sample_index_at,
              h.samples_at};
    file_.set(whole_.data(), whole_.size());
  }

  /// The file with the changes of this input alone. Behind the magic and the version, which would
  /// only have it refused.
  const std::string& change(const std::uint8_t* data, std::size_t length) {
    std::string bytes = whole_;
    std::size_t end = bytes.size();
    for (; length >= change_bytes; data += change_bytes, length -= change_bytes) {
      const std::size_t part = data[0] % (parts_.size() + 1), offset = data[2] | data[3] << 8;
      if (part == parts_.size()) {
        end = std::min(end, offset * 16);
        continue;
      }
      const std::size_t count = data[1] % 8 + 1, at = std::max<std::size_t>(24, parts_[part] + offset);
      if (at + count <= bytes.size()) std::memcpy(bytes.data() + at, data + 4, count);
    }
    file_.set(bytes.data(), end);
    return file_.path();
  }

 private:
  static constexpr std::size_t change_bytes = 12;

  static void fill(segment::segment_builder& built) {
    using namespace segment;
    segment_header& h = built.header();
    h.process_id = 4'000'000'001;  // no process has it
    h.state = static_cast<std::uint32_t>(process_state::exited);
    h.started_ns = h.counting_since_ns = 1'000'000;
    h.started_unix_ns = 1'700'000'000'000'000'000;
    h.ended_ns = 9'000'000'000;
    h.counting = 1;
    h.interval = 4096;
    set_text(h.program, "/usr/bin/program");
    set_text(h.allocator, "/usr/lib/libc.so.6");
    set_text(h.arguments, std::string("program\0--option\0", 17));
    h.mark_count = 2;
    h.marks[0].at_ns = 5'000'000;
    set_text(h.marks[0].name, "first");
    h.marks[1].at_ns = 6'000'000;
    set_text(h.marks[1].name, "second");
    set_text(h.meters[0].name, "meter");
    h.meters[0].state = 1;
    for (std::uint32_t i = 1; i < 4; ++i) {
      thread_slot& thread = built.add_thread(i, i);
      set_text(thread.name, "thread");
      thread.classes[i].allocations = 10 * i;
      thread.classes[i].allocated_bytes = 1000 * i;
      thread.classes[i].frees = i;
      thread.classes[i].freed_bytes = 100 * i;
    }
    for (std::uint64_t i = 1; i <= 8; ++i) {
      const reference r = built.add_stack(i, std::vector<std::uint64_t>(i, 0x100000 + 0x100 * i));
      stack_counters& c = built.stack_at(r).counters;
      c.samples = i;
      c.allocations = 2048 * i;
      c.allocated_bytes = 4000 * i;
      c.frees = 1024;
      c.freed_bytes = 500;
      built.add_sample(0x100 * i, r);
    }
    const reference code =
        built.add_code("keep", "/app/server.py", "\x80\x00\xd8\x04\x08", segment::line_table::python_3_11);
    built.add_stack(99, {0x100100, segment::interpreted_call_of(code, 2), 0x100200});
    built.add_misuse_report(2'000'000, "heapwright: double free: 0x10\n  here, in thread 7:\n    #1 f\n");
    for (std::uint64_t i = 1; i < 4; ++i) {
      module& m = built.add_module();
      m.begin = m.base = i << 20;
      m.end = m.begin + 4096;
      set_text(m.path, "/no/such/module.so");
    }
  }

  scratch_file file_;
  std::string whole_;
  std::array<std::size_t, 10> parts_{};
};

}  // namespace heapwright::fuzzing
