// A program that the probe takes for PHP 8.2: it exports the same names. What it has behind them is
// right, or wrong in one of many ways. Right calls are in its stacks; a wrong one is noticed,
// before anything is read that is not there. A thread that is not within the loop has native
// stacks.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include <sys/mman.h>

#include "own_segment.hpp"

using namespace heapwright::segment;

namespace {

constexpr std::uintptr_t not_mapped = 0x7000'1234'5670;
constexpr int rounds = 500;  // more than the probe tries before it believes

alignas(16) std::byte inner_frame[80], c_frame[80], main_frame[80], inner_function[168], c_function[168],
    main_function[168], shop_class[64], name[64], file[64], class_name[64], inner_instruction[32], main_instruction[32];

template <class T>
void put(std::byte* at, std::size_t distance, T value) {
  std::memcpy(at + distance, &value, sizeof value);
}

}  // namespace

extern "C" {
[[gnu::visibility("default"), gnu::used]] std::byte executor_globals[1800]{};
[[gnu::visibility("default"), gnu::used]] const char* zend_version =
    "Zend Engine v4.2.36, Copyright (c) Zend Technologies\n";
[[gnu::visibility("default"), gnu::used]] const char* get_zend_version() { return zend_version; }

[[gnu::visibility("default"), gnu::used, gnu::noinline]] void execute_ex(void (*run)()) {
  run();
  asm volatile("" : : : "memory");
}
}

namespace {

[[gnu::noinline]] void allocate() {
  for (int i = 0; i < rounds; ++i) {
    void* const p = std::malloc(5000);
    asm volatile("" : : "r"(p) : "memory");
    std::free(p);
  }
}

void set_text(std::byte* at, const char* text) {
  put<std::uint64_t>(at, 8, 12345);
  put<std::uint64_t>(at, 16, std::strlen(text));
  std::strcpy(reinterpret_cast<char*>(at + 24), text);
}

/// A file has called a function in C, in line 7, and that a method, which is at line 12.
void set_up() {
  set_text(name, "render");
  set_text(file, "/app/shop.php");
  set_text(class_name, "Shop");
  put<void*>(shop_class, 8, class_name);
  put<std::uint32_t>(inner_instruction, 24, 12);
  put<std::uint32_t>(main_instruction, 24, 7);
  put<std::uint8_t>(inner_function, 0, 2);
  put<void*>(inner_function, 8, name);
  put<void*>(inner_function, 16, shop_class);
  put<std::uint32_t>(inner_function, 160, 10);
  put<std::uint8_t>(c_function, 0, 1);
  put<std::uint8_t>(main_function, 0, 2);
  for (std::byte* function : {inner_function, main_function}) put<void*>(function, 152, file);
  put<void*>(inner_frame, 0, inner_instruction);
  put<void*>(inner_frame, 24, inner_function);
  put<void*>(inner_frame, 48, c_frame);
  put<void*>(c_frame, 24, c_function);
  put<void*>(c_frame, 48, main_frame);
  put<void*>(main_frame, 0, main_instruction);
  put<void*>(main_frame, 24, main_function);
  for (std::byte* frame : {inner_frame, main_frame}) put<std::uint32_t>(frame, 40, 1U << 17);
  put<void*>(executor_globals, 488, inner_frame);
}

void spoil(const char* what) {
  const auto is = [what](const char* fault) { return std::strcmp(what, fault) == 0; };
  auto* const nowhere = reinterpret_cast<void*>(not_mapped);
  if (is("nothing") || is("other_thread")) return;
  if (is("no_version")) return (void)(zend_version = nullptr);
  if (is("later_version")) return (void)(zend_version = "Zend Engine v4.9.0");
  if (is("other_engine")) return (void)(zend_version = "4.2.36");
  if (is("no_frame")) return put<void*>(executor_globals, 488, nullptr);
  if (is("frame")) return put(executor_globals, 488, nowhere);
  if (is("outer_frame")) return put(c_frame, 48, nowhere);
  if (is("odd_frame")) return put<void*>(c_frame, 48, main_frame + 3);
  if (is("function")) return put(main_frame, 24, nowhere);
  if (is("number_for_function")) return put<std::uint64_t>(main_frame, 24, 17);
  if (is("kind_of_function")) return put<std::uint8_t>(main_function, 0, 77);
  if (is("instruction")) return put(inner_frame, 0, nowhere);
  if (is("line")) return put<std::uint32_t>(inner_instruction, 24, 0xffff'fff0);
  if (is("class")) return put(inner_function, 16, nowhere);
  if (is("name_of_class")) return put(shop_class, 8, nowhere);
  if (is("name")) return put(inner_function, 8, nowhere);
  if (is("length_of_name")) return put<std::uint64_t>(name, 16, 1ULL << 40);
  if (is("name_without_end")) return put<char>(name, 24 + 6, 'x');
  if (is("no_file")) return put<void*>(main_function, 152, nullptr);
  if (is("ring")) return put<void*>(main_frame, 48, inner_frame);
  if (is("exception")) {  // the globals say where it was thrown
    put<void*>(executor_globals, 880, inner_instruction);
    return put<void*>(inner_frame, 0, executor_globals + 888);
  }
  if (is("long_name")) {  // at the end of what is mapped
    constexpr std::size_t page = 4096;
    auto* const pages =
        static_cast<std::byte*>(::mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ::munmap(pages + page, page);
    std::byte* const at = pages + page - 64;
    set_text(at, "render");
    put<std::uint64_t>(at, 16, 1000);
    return put<void*>(inner_function, 8, at);
  }
  std::fprintf(stderr, "false_php: no such fault: %s\n", what);
  std::exit(2);
}

struct samples {
  std::uint64_t with_php = 0, native = 0, cut = 0;
};

samples samples_of_blocks(const probe_test::own_segment& segment) {
  samples found;
  const segment_header& h = segment.header();
  for (std::uint64_t at = 0; at < h.stacks_used;) {
    const auto& s = *reinterpret_cast<const stack*>(segment.base() + h.stacks_at + at);
    const auto* const calls = reinterpret_cast<const std::uint64_t*>(&s + 1);
    unsigned in_php = 0;
    for (unsigned i = 0; i < s.depth; ++i) in_php += is_interpreted_call(calls[i]) ? 1 : 0;
    (in_php != 0 ? found.with_php : found.native) += s.counters.samples;
    if (s.is_cut != 0) found.cut += s.counters.samples;
    // allocate, the method in the place of the inner loop, run_inner, the file in that of the
    // outer.
    const bool is_right =
        in_php != 2 || (s.depth > 4 && position_in_call(calls[1]) == 12 && is_interpreted_call(calls[1]) &&
                        !is_interpreted_call(calls[2]) && position_in_call(calls[3]) == 7);
    if (!is_right) {
      std::fprintf(stderr, "false_php: other calls than there are:");
      for (unsigned i = 0; i < s.depth; ++i) std::fprintf(stderr, " %lx", calls[i]);
      std::fprintf(stderr, "\n");
      std::exit(1);
    }
    at += stack_length(s.depth);
  }
  return found;
}

[[gnu::noinline]] void run_inner() {
  execute_ex(allocate);
  asm volatile("" : : : "memory");
}

}  // namespace

int main(int, char** arguments) {
  std::free(std::malloc(100));  // whose stack makes main's file known
  set_up();
  const char* const what = arguments[1];
  spoil(what);
  if (std::strcmp(what, "other_thread") == 0) {
    std::thread(allocate).join();
  } else {
    execute_ex(run_inner);
  }
  const probe_test::own_segment segment;
  if (segment.header().interpreter_at == 0) {
    std::fprintf(stderr, "false_php: not taken for PHP\n");
    return 1;
  }
  const samples found = samples_of_blocks(segment);
  const bool is_right = std::strcmp(what, "nothing") == 0 || std::strcmp(what, "exception") == 0;
  const bool is_ring = std::strcmp(what, "ring") == 0;
  const bool is_good = is_right  ? found.with_php >= rounds
                       : is_ring ? found.cut >= rounds
                                 : found.with_php == 0 && found.native >= rounds;
  if (is_good) return 0;
  std::fprintf(stderr, "false_php %s: %lu samples with calls in PHP, %lu without, %lu cut\n", what, found.with_php,
               found.native, found.cut);
  return 1;
}
