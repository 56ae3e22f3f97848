#include "unwind.hpp"

#include <atomic>
#include <bit>
#include <cstring>

extern "C" {
extern const char __ehdr_start [[gnu::visibility("hidden")]];
extern const char _end [[gnu::visibility("hidden")]];
}

namespace heapwright::probe {
namespace {

/// Rules by address. Entries are written and read without a lock: one that was torn has a check that does not fit (Hyatt, Mann, "A
/// lock-less transposition table implementation").
class rule_table {
 public:
  bool find(std::uintptr_t pc, frame_rule& rule) const noexcept {
    const entry& e = entries_[index(pc)];
    const std::uint64_t bits = e.rule.load(std::memory_order_relaxed);
    if (e.check.load(std::memory_order_relaxed) != (bits ^ key(pc))) return false;
    rule = std::bit_cast<frame_rule>(bits);
    return true;
  }

  void put(std::uintptr_t pc, frame_rule rule) noexcept {
    entry& e = entries_[index(pc)];
    const auto bits = std::bit_cast<std::uint64_t>(rule);
    e.rule.store(bits, std::memory_order_relaxed);
    e.check.store(bits ^ key(pc), std::memory_order_relaxed);
  }

  void forget() noexcept { generation_.fetch_add(1, std::memory_order_relaxed); }

 private:
  static constexpr std::size_t count = 8192;

  struct entry {
    std::atomic<std::uint64_t> check{0};
    std::atomic<std::uint64_t> rule{0};
  };

  static std::size_t index(std::uintptr_t pc) noexcept { return (pc * 0x9E3779B97F4A7C15) >> (64 - 13); }
  static_assert(count == 1 << 13);

  /// Addresses have 57 bits at most.
  std::uint64_t key(std::uintptr_t pc) const noexcept {
    return pc ^ (generation_.load(std::memory_order_relaxed) + 1) << 57;
  }

  entry entries_[count];
  std::atomic<std::uint64_t> generation_{0};
};

constinit rule_table rules;

bool is_own(std::uintptr_t pc) noexcept {
  const auto begin = reinterpret_cast<std::uintptr_t>(&__ehdr_start);
  return pc - begin < reinterpret_cast<std::uintptr_t>(&_end) - begin;
}

std::uintptr_t word_at(std::uintptr_t address) noexcept {
  std::uintptr_t word = 0;
  std::memcpy(&word, reinterpret_cast<const void*>(address), sizeof word);
  return word;
}

/// Return addresses may be signed (ARMv8.3): the upper bits are no part of the address.
std::uintptr_t without_signature(std::uintptr_t address) noexcept { return address & ((std::uintptr_t{1} << 56) - 1); }

struct frame {
  std::uintptr_t pc, sp, fp;
};

/// Where the processor is now. Inlined, so it is in the frame of the function that asks.
[[gnu::always_inline]] inline frame current_frame() noexcept {
  frame f{};
#if defined(__x86_64__)
  asm volatile("lea 1(%%rip), %0\n\tmov %%rsp, %1\n\tmov %%rbp, %2" : "=r"(f.pc), "=r"(f.sp), "=r"(f.fp));
#elif defined(__aarch64__)
  asm volatile("adr %0, .+4\n\tmov %1, sp\n\tmov %2, x29" : "=r"(f.pc), "=r"(f.sp), "=r"(f.fp));
#endif
  return f;
}

class stack_bounds {
 public:
  stack_bounds(std::uintptr_t begin, std::uintptr_t end) noexcept : begin_(begin), end_(begin < end ? end : 0) {}

  /// Whether there is a word. Of a stack that is not the thread's own (a coroutine's) only the beginning is known.
  [[nodiscard]] bool has(std::uintptr_t address) const noexcept {
    constexpr std::uintptr_t believable = 1 << 20;
    return address >= begin_ && address % 8 == 0 && address < (end_ != 0 ? end_ - 7 : begin_ + believable);
  }

  [[nodiscard]] bool is_known() const noexcept { return end_ != 0; }

 private:
  std::uintptr_t begin_, end_;
};

/// The caller's frame. False: there is none, or it is not known.
bool step(frame& f, const frame_rule& rule, const stack_bounds& stack) noexcept {
  std::uintptr_t cfa = 0;
  const auto offset = static_cast<std::uintptr_t>(std::intptr_t{rule.cfa_offset});
  switch (rule.kind) {
    case frame_kind::none: return false;
    case frame_kind::stack_pointer: cfa = f.sp + offset; break;
    case frame_kind::guessed:
      if (!stack.is_known()) return false;
      [[fallthrough]];
    case frame_kind::frame_pointer: cfa = f.fp + offset; break;
    case frame_kind::indirect:
      if (!stack.has(f.fp + offset)) return false;
      cfa = word_at(f.fp + offset);
      break;
  }
  const auto at_cfa = [&](int words) { return cfa + static_cast<std::uintptr_t>(std::intptr_t{words} * 8); };
  if (cfa <= f.sp || rule.return_address_at == 0 || !stack.has(at_cfa(rule.return_address_at))) return false;
  f.pc = without_signature(word_at(at_cfa(rule.return_address_at)));
  if (rule.frame_pointer_at != 0) {
    if (!stack.has(at_cfa(rule.frame_pointer_at))) return false;
    f.fp = word_at(at_cfa(rule.frame_pointer_at));
  }
  f.sp = cfa;
  return f.pc != 0;
}

}  // namespace

[[gnu::noinline]] void walk(call_stack& calls, std::uintptr_t stack_end,
                            void (*new_object)(const code_object&) noexcept) noexcept {
  frame f = current_frame();
  const stack_bounds stack(f.sp, stack_end);
  calls.depth = 0;
  for (;;) {
    if (!is_own(f.pc)) {
      if (calls.depth == call_stack::most) {
        calls.is_cut = true;
        return;
      }
      calls.addresses[calls.depth++] = f.pc;
    }
    // A call may be the last instruction of its function: its return address belongs to the next one.
    const std::uintptr_t call = f.pc - 1;
    frame_rule rule;
    if (!rules.find(call, rule)) {
      code_object object{};
      rule = find_frame_rule(call, object);
      rules.put(call, rule);
      if (object.begin != 0) new_object(object);
    }
    if (!step(f, rule, stack)) return;
  }
}

void forget_rules() noexcept { rules.forget(); }

}  // namespace heapwright::probe
