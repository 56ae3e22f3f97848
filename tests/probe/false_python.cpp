// A program that the probe takes for CPython 3.11: it exports the same names. What it has behind
// them is right, or wrong in one of many ways. Right calls are in its stacks; a wrong one is
// noticed, before anything is read that is not there.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <sys/mman.h>

#include "own_segment.hpp"

using namespace heapwright::segment;

namespace {

constexpr std::uintptr_t not_mapped = 0x7000'1234'5670;
constexpr int rounds = 500;  // more than the probe tries before it believes

alignas(16) std::byte thread_state[256], function_frame[128],
    module_frame[128], code[256], name[128], file[128], lines[64];

template <class T>
void put(std::byte* at, std::size_t distance, T value) {
  std::memcpy(at + distance, &value, sizeof value);
}

void set_text(std::byte* at, const char* text);
void set_up();

struct c_frame {
  std::uint8_t uses_tracing;
  void* current_frame;
  c_frame* previous;
};

}  // namespace

extern "C" {
[[gnu::visibility("default"), gnu::used]] extern const unsigned long Py_Version = 0x030b07f0;
[[gnu::visibility("default"), gnu::used]] std::byte _PyRuntime[64]{};
[[gnu::visibility("default"), gnu::used]] std::byte PyCode_Type[64]{};
[[gnu::visibility("default"), gnu::used]] std::byte PyUnicode_Type[64]{};

[[gnu::visibility("default"), gnu::used]] void* state_of_thread = nullptr;
[[gnu::visibility("default"), gnu::used]] void* PyGILState_GetThisThreadState() { return state_of_thread; }

[[gnu::visibility("default"), gnu::used, gnu::noinline]] void _PyEval_EvalFrameDefault(void* wrong_c_frame) {
  c_frame here{0, function_frame, nullptr};
  put(thread_state, 56, wrong_c_frame != nullptr ? wrong_c_frame : &here);
  for (int i = 0; i < rounds; ++i) {
    void* const p = std::malloc(5000);
    asm volatile("" : : "r"(p), "m"(here) : "memory");
    std::free(p);
  }
}
}

namespace {

void set_text(std::byte* at, const char* text) {
  put<void*>(at, 8, PyUnicode_Type);
  put<std::uint64_t>(at, 16, std::strlen(text));
  put<std::uint32_t>(at, 32, 1U << 2 | 1U << 5 | 1U << 6);  // a byte for a character, which follow, ASCII
  std::strcpy(reinterpret_cast<char*>(at + 48), text);
}

/// <module> has called the function, at its second instruction; that is at its third one.
void set_up() {
  put<void*>(code, 8, PyCode_Type);
  put<void*>(code, 112, file);
  put<void*>(code, 128, name);
  put<void*>(code, 136, lines);
  put<int>(code, 72, 10);
  set_text(name, "keeps_blocks");
  set_text(file, "/app/server.py");
  put<std::uint64_t>(lines, 16, 2);
  put<std::uint16_t>(lines, 32, 0x0080);
  for (std::byte* frame : {function_frame, module_frame}) put<void*>(frame, 32, code);
  put<void*>(function_frame, 48, module_frame);
  put<void*>(function_frame, 56, code + 184 + 4);
  put<void*>(module_frame, 56, code + 184 + 2);
  put<bool>(module_frame, 68, true);
  state_of_thread = thread_state;
}

/// What is wrong, by name; returns the C frame that is to be used, null: the right one.
void* spoil(const char* what) {
  const auto is = [what](const char* fault) { return std::strcmp(what, fault) == 0; };
  auto* const nowhere = reinterpret_cast<void*>(not_mapped);
  if (is("nothing")) return nullptr;
  if (is("no_thread_state")) return state_of_thread = nullptr;
  if (is("thread_state")) return state_of_thread = nowhere, nullptr;
  if (is("c_frame")) return nowhere;
  if (is("odd_frame")) return put<void*>(function_frame, 48, module_frame + 3), nullptr;
  if (is("frame")) return put(function_frame, 48, nowhere), nullptr;
  if (is("code")) return put(module_frame, 32, nowhere), nullptr;
  if (is("number_for_code")) return put<std::uint64_t>(module_frame, 32, 17), nullptr;
  if (is("type_of_code")) return put<void*>(code, 8, PyUnicode_Type), nullptr;
  if (is("name")) return put(code, 128, nowhere), nullptr;
  if (is("type_of_name")) return put<void*>(name, 8, PyCode_Type), nullptr;
  if (is("state_of_name")) return put<std::uint32_t>(name, 32, 0), nullptr;
  if (is("lines")) return put(code, 136, nowhere), nullptr;
  if (is("ring")) return put<void*>(function_frame, 48, function_frame), nullptr;
  if (is("long_name")) {  // at the end of what is mapped
    constexpr std::size_t page = 4096;
    auto* const pages =
        static_cast<std::byte*>(::mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ::munmap(pages + page, page);
    std::byte* const at = pages + page - 128;
    set_text(at, "name");
    put<std::uint64_t>(at, 16, 1000);
    put<void*>(code, 128, at);
    return nullptr;
  }
  std::fprintf(stderr, "false_python: no such fault: %s\n", what);
  std::exit(2);
}

struct samples {
  std::uint64_t with_python = 0, native = 0, cut = 0;
};

samples samples_of_blocks(const probe_test::own_segment& segment) {
  samples found;
  const segment_header& h = segment.header();
  for (std::uint64_t at = 0; at < h.stacks_used;) {
    const auto& s = *reinterpret_cast<const stack*>(segment.base() + h.stacks_at + at);
    const auto* const calls = reinterpret_cast<const std::uint64_t*>(&s + 1);
    unsigned in_python = 0;
    for (unsigned i = 0; i < s.depth; ++i) in_python += is_interpreted_call(calls[i]) ? 1 : 0;
    (in_python != 0 ? found.with_python : found.native) += s.counters.samples;
    if (s.is_cut != 0) found.cut += s.counters.samples;
    // The function's call and the module's stand in the place of the loop, and main behind them.
    if (in_python == 2 &&
        (calls[0] != interpreted_call_of(1, 4) || calls[1] != interpreted_call_of(1, 2) || s.depth < 3)) {
      std::fprintf(stderr, "false_python: other calls than there are: %lx %lx\n", calls[0], calls[1]);
      std::exit(1);
    }
    at += stack_length(s.depth);
  }
  return found;
}

}  // namespace

int main(int, char** arguments) {
  std::free(std::malloc(100));  // whose stack makes main's file known
  set_up();
  const char* const what = arguments[1];
  _PyEval_EvalFrameDefault(spoil(what));
  const probe_test::own_segment segment;
  if (segment.header().interpreter_at == 0) {
    std::fprintf(stderr, "false_python: not taken for a Python\n");
    return 1;
  }
  const samples found = samples_of_blocks(segment);
  const bool is_right = std::strcmp(what, "nothing") == 0, is_ring = std::strcmp(what, "ring") == 0;
  // A table of lines that is not there leaves the name without lines, or the calls out.
  const bool is_good = is_right  ? found.with_python >= rounds
                       : is_ring ? found.cut >= rounds
                                 : found.with_python == 0 && found.native >= rounds;
  if (is_good) return 0;
  std::fprintf(stderr, "false_python %s: %lu samples with calls in Python, %lu without, %lu cut\n", what,
               found.with_python, found.native, found.cut);
  return 1;
}
