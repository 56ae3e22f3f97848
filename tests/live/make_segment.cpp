// Makes the segment of a busy program without one: 500 threads, all size classes, 10,000 stacks,
// some of which grow.
//
//   make_segment FILE [SECONDS [THREADS [STACKS [MODE]]]]
//
// Writes as the process whose segment it is, and keeps writing for that long: every 50 ms all
// threads allocate and free a little more. Then it says in the segment that it has exited. MODE
// "late": counting began after the process did; "dormant": it does not count; "kill": never says
// that it ended.
#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sample_weight.hpp"
#include "segment.hpp"

// Code for the stacks to be in: functions with names and lines. They are never called.
namespace server {
unsigned work = 0;
template <unsigned N>
struct request_handler {
  [[gnu::noinline]] static void handle_request() { work += N; }
};
template <unsigned N>
struct cache {
  [[gnu::noinline]] static void insert_entry() { work ^= N; }
};
template <unsigned N>
struct json_parser {
  [[gnu::noinline]] static void parse_object() { work |= N; }
};
[[gnu::noinline]] void run_forever() { ++work; }
[[gnu::noinline]] void remember_session_forever() { --work; }
}  // namespace server

namespace {

using namespace heapwright::segment;

using function = void (*)();
constexpr unsigned variants = 96;

template <unsigned... N>
std::vector<function> functions_of(std::integer_sequence<unsigned, N...>) {
  return {&server::request_handler<N>::handle_request..., &server::cache<N>::insert_entry...,
          &server::json_parser<N>::parse_object...};
}

/// A return address in a function of the family for a frame that is `outer` from the outermost.
std::uint64_t return_address(std::uint32_t outer, std::uint32_t s) {
  static const std::vector<function> all = functions_of(std::make_integer_sequence<unsigned, variants>());
  if (outer == 0) return reinterpret_cast<std::uint64_t>(&server::run_forever) + 2;
  if (s == 7 && outer == 5) return reinterpret_cast<std::uint64_t>(&server::remember_session_forever) + 2;
  const std::uint32_t spread = outer < 3 ? s / 1500 : outer < 5 ? s / 120 : outer < 8 ? s / 11 : s;
  return reinterpret_cast<std::uint64_t>(all[outer % 3 * variants + (spread + outer) % variants]) + 2;
}

std::uint64_t clock_ns(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(t.tv_nsec);
}

std::uint64_t process_start() {
  std::ifstream file("/proc/self/stat");
  std::string text((std::istreambuf_iterator<char>(file)), {});
  text.erase(0, text.rfind(')') + 2);
  std::uint64_t value = 0;
  std::size_t at = 0;
  for (int field = 3; field < 22; ++field) at = text.find(' ', at) + 1;
  value = std::strtoull(text.c_str() + at, nullptr, 10);
  return value;
}

template <std::size_t N>
void put(std::array<char, N>& into, std::string_view text) {
  std::memcpy(into.data(), text.data(), std::min(text.size(), N - 1));
}

/// Small, repeatable, good enough.
class random_numbers {
 public:
  std::uint64_t operator()() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return state_;
  }
  std::uint64_t below(std::uint64_t n) { return (*this)() % n; }

 private:
  std::uint64_t state_ = 0x9e3779b97f4a7c15;
};

struct layout_of_file {
  std::uint32_t threads, stacks, samples;
  std::uint64_t misuse_reports_at, threads_at, index_at, stacks_at, sample_index_at, samples_at, bytes;
  static constexpr std::uint32_t buckets = 16384;
  static constexpr unsigned depth = 12;
  static constexpr std::uint64_t stack_bytes = stack_length(depth);

  layout_of_file(std::uint32_t thread_count, std::uint32_t stack_count)
      : threads(thread_count + 1), stacks(stack_count), samples(stack_count * 8) {
    misuse_reports_at = (modules_at + max_modules * sizeof(module) + 4095) / 4096 * 4096;
    threads_at = misuse_reports_at + max_misuse_reports * sizeof(misuse_report);
    index_at = threads_at + std::uint64_t{threads} * thread_slot_bytes;
    stacks_at = index_at + buckets * 4;
    sample_index_at = stacks_at + stacks * stack_bytes;
    samples_at = sample_index_at + buckets * 4;
    bytes = samples_at + samples * sizeof(sample);
  }
};

class program {
 public:
  program(const char* path, std::uint32_t threads, std::uint32_t stacks, std::string_view mode)
      : at_(threads, stacks), mode_(mode) {
    const int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || ftruncate(fd, static_cast<off_t>(at_.bytes)) != 0) std::exit(1);
    void* mapped = mmap(nullptr, at_.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (mapped == MAP_FAILED) std::exit(1);
    base_ = static_cast<char*>(mapped);
    begin_header();
    add_modules();
    begin_threads();
    begin_stacks();
    header().process_id = static_cast<std::uint32_t>(getpid());
    header().state = static_cast<std::uint32_t>(process_state::running);
    // Last: with the magic it is a segment.
    put(header().magic, std::string_view(segment_magic.data(), 15));
  }

  void work(unsigned step) {
    if (header().counting == 0) return;
    for (std::uint32_t t = 1; t < at_.threads; ++t) work_of(t, step);
    std::uint64_t live = 0;
    for (std::uint32_t t = 1; t < at_.threads; ++t) live += thread(t).net_bytes;
    header().live = live;
    if (live > header().peak || reset_seen_ != header().reset) {
      reset_seen_ = header().reset;
      header().peak = live;
      header().peak_at_ns = clock_ns(CLOCK_MONOTONIC);
    }
    for (unsigned i = 0; i < 40; ++i) sample_one(step);
  }

  void end() {
    if (mode_ == "kill") return;
    header().ended_ns = clock_ns(CLOCK_MONOTONIC);
    header().state = static_cast<std::uint32_t>(process_state::exited);
  }

 private:
  template <class T>
  T& at(std::uint64_t offset) {
    return *reinterpret_cast<T*>(base_ + offset);
  }
  segment_header& header() { return at<segment_header>(0); }
  thread_slot& thread(std::uint32_t t) {
    return at<thread_slot>(at_.threads_at + std::uint64_t{t} * thread_slot_bytes);
  }
  stack& stack_number(std::uint32_t s) { return at<stack>(at_.stacks_at + s * layout_of_file::stack_bytes); }

  void begin_header() {
    segment_header& h = header();
    h.version = segment_version;
    h.header_bytes = sizeof(segment_header);
    h.started_ns = clock_ns(CLOCK_MONOTONIC);
    h.started_unix_ns = clock_ns(CLOCK_REALTIME);
    h.process_start = process_start();
    h.bytes = at_.bytes;
    h.misuse_reports_at = at_.misuse_reports_at;
    h.threads_at = at_.threads_at;
    h.stack_index_at = at_.index_at;
    h.stacks_at = at_.stacks_at;
    h.sample_index_at = at_.sample_index_at;
    h.samples_at = at_.samples_at;
    h.thread_slots = at_.threads;
    h.stack_buckets = h.sample_buckets = layout_of_file::buckets;
    h.class_count = size_scale::count;
    h.counting = mode_ == "dormant" ? 0 : 1;
    h.interval = 65536;
    h.peak_grain = 65536;
    if (mode_ != "dormant") h.counting_since_ns = h.started_ns + (mode_ == "late" ? 1'000'000 : 0);
    h.threads_ever = at_.threads + 24;
    h.threads_folded = 24;
    put(h.program, "/usr/bin/example-server");
    put(h.allocator, "/usr/lib/x86_64-linux-gnu/libc.so.6");
    put(h.arguments, std::string_view("example-server\0--workers\000500\0", 30));
    h.arguments_bytes = 30;
    h.marks[0].at_ns = h.started_ns + 1000;
    put(h.marks[0].name, "configuration read");
    h.mark_count = 1;
  }

  void add_modules() {
    // Its own, so that symbols are those of this file.
    dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* me) {
          program& p = *static_cast<program*>(me);
          const auto n = p.header().modules_used.load();
          std::uint64_t begin = UINT64_MAX, end = 0;
          for (int i = 0; i < info->dlpi_phnum; ++i) {
            const auto& segment = info->dlpi_phdr[i];
            if (segment.p_type != PT_LOAD) continue;
            begin = std::min<std::uint64_t>(begin, info->dlpi_addr + segment.p_vaddr);
            end = std::max<std::uint64_t>(end, info->dlpi_addr + segment.p_vaddr + segment.p_memsz);
          }
          std::array<char, 4096> self{};
          std::string_view path = info->dlpi_name;
          if (path.empty() && n == 0 && readlink("/proc/self/exe", self.data(), self.size() - 1) > 0)
            path = self.data();
          if (path.empty() || path[0] != '/') return 0;
          module& m = p.at<module>(modules_at + n * sizeof(module));
          m.begin = begin;
          m.end = end;
          m.base = info->dlpi_addr;
          put(m.path, path);
          p.header().modules_used = n + 1;
          return 0;
        },
        this);
  }

  void begin_threads() {
    thread(0).state = static_cast<std::uint32_t>(slot_state::everyone);
    for (std::uint32_t t = 1; t < at_.threads; ++t) {
      thread_slot& slot = thread(t);
      slot.thread_id = static_cast<std::uint32_t>(getpid()) + t - 1;
      put(slot.name, t == 1       ? "example-server"
                     : t % 7 == 0 ? "io-" + std::to_string(t)
                                  : "worker-" + std::to_string(t));
      slot.began_ns = header().started_ns + t * 1000;
      slot.state = static_cast<std::uint32_t>(t % 50 == 0 ? slot_state::gone : slot_state::alive);
      if (t % 50 == 0) slot.ended_ns = header().started_ns + 1'000'000;
    }
  }

  /// Call paths that share their outer frames, as those of programs do.
  void begin_stacks() {
    for (std::uint32_t s = 0; s < at_.stacks; ++s) {
      stack& made = stack_number(s);
      made.hash = s * 0x9e3779b97f4a7c15;
      made.depth = 6 + s % 7;
      std::atomic<reference>& bucket =
          at<std::atomic<reference>>(at_.index_at + made.hash % layout_of_file::buckets * 4);
      made.next = bucket.load();
      auto* addresses = reinterpret_cast<std::uint64_t*>(&made + 1);
      for (std::uint32_t d = 0; d < made.depth; ++d) addresses[d] = return_address(made.depth - 1 - d, s);
      bucket = static_cast<reference>(s * layout_of_file::stack_bytes / reference_unit + 1);
    }
    header().peak_number = 1;  // what stacks have now is of the peak
    header().stacks_used = at_.stacks * layout_of_file::stack_bytes;
  }

  void work_of(std::uint32_t t, unsigned step) {
    thread_slot& slot = thread(t);
    if (slot.state != static_cast<std::uint32_t>(slot_state::alive)) return;
    // Threads with a name of io- free what others allocate.
    const bool frees_others = t % 7 == 0;
    for (unsigned c = step % 4; c < size_scale::count; c += 4) {
      const std::uint64_t bytes = size_scale::largest(c);
      if (bytes > 1 << 16 && (step > 7 || t != 1)) break;
      if (bytes > 1 << 26) break;
      const std::uint64_t n = 1 + (1 << 16) / bytes / (1 + t % 5);
      class_counters& f = slot.classes[c];
      const std::uint64_t freed =
          frees_others ? n + n / 6 * 6 : n - n / 6 - (step % 8 == 0 && t % 3 == 0 && n == 1 ? 1 : 0);
      const bool begins = step < 4 && !frees_others;
      f.allocations += n;
      f.allocated_bytes += n * bytes;
      f.requested_bytes += n * (bytes - bytes / 16);
      f.frees += begins ? n / 2 : freed;
      f.freed_bytes += (begins ? n / 2 : freed) * bytes;
      slot.net_bytes += n * bytes - (begins ? n / 2 : freed) * bytes;
    }
  }

  static void add_real(counter& c, double x) { c = std::bit_cast<std::uint64_t>(std::bit_cast<double>(c.load()) + x); }

  void sample_one(unsigned step) {
    // A few stacks get most of it; number 7 never frees.
    const bool leaks = random_.below(4) == 0;
    const auto s = leaks ? 7
                         : static_cast<std::uint32_t>(std::pow(static_cast<double>(at_.stacks),
                                                               static_cast<double>(random_.below(1000)) / 1000.0)) -
                               1;
    const std::uint64_t bytes = 64 + random_.below(64) * 64, stands_for = 1024 * (65536 / bytes);
    stack_counters& f = stack_number(s).counters;
    const std::uint64_t now = clock_ns(CLOCK_MONOTONIC);
    f.samples += 1;
    f.allocations += stands_for;
    f.allocated_bytes += stands_for / 1024 * bytes;
    const double variance = weight_of(bytes, 65536).variance;
    add_real(f.allocated_variance, variance);
    if (f.first_ns == 0) f.first_ns = now;
    f.last_ns = now;
    const bool stays = leaks || (step < 20 ? random_.below(3) != 0 : random_.below(40) == 0);
    if (stays && samples_ < at_.samples) {
      sample& made = at<sample>(at_.samples_at + samples_ * sizeof(sample));
      made.bytes = bytes;
      made.at_ns = now;
      made.at_stack = static_cast<reference>(s * layout_of_file::stack_bytes / reference_unit + 1);
      const std::uint64_t code = sampling_interval(65536).code();
      made.address_and_interval = (0x7f0000000000 + samples_ * 4096) | code << sample::address_bits;
      std::atomic<reference>& bucket =
          at<std::atomic<reference>>(at_.sample_index_at + samples_ % layout_of_file::buckets * 4);
      made.next = bucket.load();
      bucket = static_cast<reference>(samples_ * sizeof(sample) / reference_unit + 1);
      ++samples_;
      header().samples_used = samples_ * sizeof(sample);
      return;
    }
    f.frees += stands_for;
    f.freed_bytes += stands_for / 1024 * bytes;
    add_real(f.freed_variance, variance);
    const bool is_short = s % 3 == 0;
    if (is_short) {
      f.short_lived += stands_for;
      f.short_lived_bytes += stands_for / 1024 * bytes;
    }
    f.freed_samples += 1;
    f.lifetimes[is_short ? 3 : 7] += stands_for / 1024 * bytes;
  }

  layout_of_file at_;
  std::string mode_;
  char* base_ = nullptr;
  std::uint32_t reset_seen_ = 0;
  std::uint64_t samples_ = 0;
  random_numbers random_;
};

std::uint32_t number(int argc, char** argv, int i, std::uint32_t otherwise) {
  return argc > i ? static_cast<std::uint32_t>(std::strtoul(argv[i], nullptr, 10)) : otherwise;
}

/// As servers do that say in their arguments what they do.
void change_title(int argc, char** argv) {
  constexpr std::string_view title("example-server\0--workers\000500\0", 30);
  const auto room = static_cast<std::size_t>(argv[argc - 1] + std::strlen(argv[argc - 1]) - argv[0]);
  if (room < title.size()) return;
  std::memset(argv[0], 0, room);
  std::memcpy(argv[0], title.data(), title.size());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const auto seconds = number(argc, argv, 2, 0);
  program p(argv[1], number(argc, argv, 3, 500), number(argc, argv, 4, 10'000), argc > 5 ? argv[5] : "");
  change_title(argc, argv);
  unsigned step = 0;
  for (; step < 200; ++step) p.work(step);
  std::puts("ready");
  std::fflush(stdout);
  for (unsigned i = 0; i < seconds * 20; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    p.work(step++);
  }
  p.end();
}
