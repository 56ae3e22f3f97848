#include "guarded_samples.hpp"

#include <algorithm>
#include <cstring>

#include <signal.h>
#include <unistd.h>

#include <heapwright/core/bits.hpp>
#include <heapwright/core/check.hpp>
#include <heapwright/core/hash.hpp>
#include <heapwright/core/layout.hpp>
#include <heapwright/core/text.hpp>
#include <heapwright/heap/class_table.hpp>

#include "../abi/written_at_start.hpp"
#include "chosen_recipe.hpp"
#include "misuse_report.hpp"

namespace heapwright::process {

constinit guarded_samples the_samples;

namespace {

using unwind::current_state;
using unwind::machine_state;

constexpr int faults[] = {SIGSEGV, SIGBUS};

/// What the program had for these before.
[[HEAPWRIGHT_WRITTEN_AT_START]] constinit struct sigaction handlers_before[std::size(faults)]{};

std::size_t index_of(int signal) noexcept { return signal == faults[0] ? 0 : 1; }

machine_state state_in(const void* context) noexcept {
  const auto& machine = static_cast<const ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  const auto in = [&](int r) { return static_cast<std::uintptr_t>(machine.gregs[r]); };
  return {in(REG_RIP) + 1, in(REG_RSP), in(REG_RBP)};  // as of a call: the address behind it
#elif defined(__aarch64__)
  return {machine.pc + 4, machine.sp, machine.regs[29]};
#elif defined(__riscv)
  return {machine.__gregs[REG_PC] + 2, machine.__gregs[REG_SP], machine.__gregs[REG_S0]};
#else
  (void)machine;
  return {};
#endif
}

const char* access_in([[maybe_unused]] const void* context) noexcept {
#if defined(__x86_64__)
  constexpr unsigned was_write = 2;
  const auto error = static_cast<const ucontext_t*>(context)->uc_mcontext.gregs[REG_ERR];
  return (static_cast<unsigned>(error) & was_write) != 0 ? "write" : "read";
#else
  return "access";
#endif
}

/// On the stack while a handler of the program runs. One that leaves by longjmp leaves it behind,
/// so what lies there must still be the mark.
struct running_handler {
  std::uint64_t mark;

  [[nodiscard]] std::uint64_t expected() const noexcept { return fibonacci_hash(address_of(this)); }
};
constinit std::atomic<running_handler*> last_run{nullptr};
constinit std::atomic<pid_t> last_thread{0};

/// Whether a handler of the program, called from here, has come back: it has called the handler
/// that it had found, or has put it back and raised the signal again. `frame`: of on_fault.
bool is_within_handler(std::uintptr_t frame) noexcept {
  const running_handler* const last = last_run.load(std::memory_order_relaxed);
  return last != nullptr && last_thread.load(std::memory_order_relaxed) == ::gettid() && frame < address_of(last) &&
         static_cast<const volatile running_handler*>(last)->mark == last->expected();
}

void remove_handler(int signal) noexcept {
  struct sigaction none {};
  none.sa_handler = SIG_DFL;
  ::sigaction(signal, &none, nullptr);
}

/// The process ends by the signal: the instruction faults again, or what was sent is sent again.
void end_by(int signal, const siginfo_t* info) noexcept {
  remove_handler(signal);
  const bool is_fault = info->si_code > 0;
  if (!is_fault) ::raise(signal);
}

void run(const struct sigaction& handler, int signal, siginfo_t* info, void* context) noexcept {
  running_handler here{};
  static_cast<volatile running_handler&>(here).mark = here.expected();
  last_thread.store(::gettid(), std::memory_order_relaxed);
  last_run.store(&here, std::memory_order_relaxed);
  if ((handler.sa_flags & SA_SIGINFO) != 0)
    handler.sa_sigaction(signal, info, context);
  else
    handler.sa_handler(signal);
  last_run.store(nullptr, std::memory_order_relaxed);
}

/// Explains the fault, and passes it on to the handler that the program had.
void on_fault(int signal, siginfo_t* info, void* context) {
  if (is_within_handler(reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)))) return end_by(signal, info);
  if (info->si_code > 0) the_samples.explain(info->si_addr, access_in(context), state_in(context));
  const struct sigaction& before = handlers_before[index_of(signal)];
  const bool has_info = (before.sa_flags & SA_SIGINFO) != 0;
  if (!has_info && before.sa_handler == SIG_DFL) return end_by(signal, info);
  if (!has_info && before.sa_handler == SIG_IGN) return info->si_code > 0 ? end_by(signal, info) : void();
  if ((before.sa_flags & SA_RESETHAND) != 0) remove_handler(signal);
  run(before, signal, info, context);
}

/// Again with each sample: a program installs its own handlers after the library's.
void watch_faults() noexcept {
  for (const int signal : faults) {
    struct sigaction now {};
    if (::sigaction(signal, nullptr, &now) != 0 || ((now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == on_fault))
      continue;
    const opened is_open(handlers_before);
    if (!is_open) continue;
    handlers_before[index_of(signal)] = now;
    struct sigaction own {};
    own.sa_sigaction = on_fault;
    own.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER | (now.sa_flags & SA_RESTART);
    own.sa_mask = now.sa_mask;
    ::sigaction(signal, &own, nullptr);
  }
}

}  // namespace

bool guarded_samples::place::contains(const void* p) const noexcept {
  return is != state::unused && address_of(p) - address_of(begin) < bytes;
}

void guarded_samples::begin(std::uint32_t interval) noexcept {
  if (interval == 0) return;  // writes nothing: the page stays out of memory
  interval_ = interval;
  if (&unwind::look_up_dl_find_object != nullptr) unwind::look_up_dl_find_object();
  watch_faults();
  (void)draw();
}

/// Evenly from 1 to nearly twice the interval, so that no habit of the program is in step.
bool guarded_samples::draw() noexcept {
  left_.store(static_cast<std::int64_t>(1 + linux_os::random_number() % (2 * std::uint64_t{interval_} - 1)),
              std::memory_order_relaxed);
  return true;
}

void* guarded_samples::allocate(std::size_t size, std::size_t alignment, block_origin origin) noexcept {
  const std::size_t page = linux_os::page_size();
  if (alignment > page || size > PTRDIFF_MAX - 4 * page || !lock_.try_acquire()) return nullptr;
  size = std::max<std::size_t>(size, 1);
  void* block = nullptr;
  if (place* const s = free_place()) {
    const std::size_t body = align_up(size, page);
    auto* const begin = static_cast<std::byte*>(linux_os::map(body + 2 * page));
    const bool is_whole =
        begin != nullptr && linux_os::protect(begin, page) && linux_os::protect(begin + page + body, page);
    if (is_whole) {
      watch_faults();
      if (s->is == state::freed) linux_os::unmap(s->begin, s->bytes);
      // Of four, one begins where its pages begin: what is written before it is seen at once.
      const bool is_at_begin = linux_os::random_number() % 4 == 0;
      const std::size_t from = is_at_begin ? 0 : align_down(body - size, std::max(alignment, default_alignment));
      std::byte* const first = begin + page;
      std::memset(first, static_cast<int>(filler), from);
      std::memset(first + from + size, static_cast<int>(filler), body - from - size);
      s->begin = begin;
      s->bytes = body + 2 * page;
      s->block = first + from;
      s->size = size;
      s->origin = origin;
      s->asked_alignment = alignment;
      s->is_told = false;
      s->allocated.note(current_state());
      s->is = state::live;
      block = s->block;
    } else if (begin != nullptr) {
      linux_os::unmap(begin, body + 2 * page);
    }
  }
  lock_.release();
  return block;
}

bool guarded_samples::deallocate(void* p, const block_claim& said) noexcept {
  if (!is_on() || p == nullptr) return false;
  holding guard(lock_);
  place* const found = find(p);
  if (found == nullptr) return false;
  place& s = *found;
  if (!is_live(s, p)) return true;
  if (chosen_recipe.hardening.sealed || s.size > class_table<chosen_recipe>::largest) check_claim(s, said);
  if (const std::byte* const at = written_beside(s); at != nullptr)
    mistake(s, at < s.block ? "write before a block" : "write beyond a block", at, current_state());
  const std::size_t page = linux_os::page_size();
  s.freed.note(current_state());
  s.freed_as = ++frees_;
  s.is = state::freed;
  (void)linux_os::protect(s.begin + page, s.bytes - 2 * page);
  return true;
}

bool guarded_samples::give_up_freed() noexcept {
  if (!is_on() || !lock_.try_acquire()) return false;
  bool is_any = false;
  for (place& s : places_) {
    if (s.is != state::freed) continue;
    linux_os::unmap(s.begin, s.bytes);
    s.is = state::unused;
    is_any = true;
  }
  lock_.release();
  return is_any;
}

std::optional<std::size_t> guarded_samples::size(void* p, const call_names& by) noexcept {
  if (!is_on() || p == nullptr) return std::nullopt;
  holding guard(lock_);
  const place* const s = find(p);
  if (s == nullptr) return std::nullopt;
  return is_live(*s, p, by) ? s->size : 0;
}

std::size_t guarded_samples::size_if_live(const void* p) noexcept {
  if (!is_on() || p == nullptr) return 0;
  holding guard(lock_);
  const place* const s = find_live(p);
  return s != nullptr ? s->size : 0;
}

bool guarded_samples::set_origin(const void* p, block_origin origin) noexcept {
  if (!is_on()) return false;
  holding guard(lock_);
  place* const s = find_live(p);
  if (s != nullptr) s->origin = origin;
  return s != nullptr;
}

/// Where another thread is here, or a signal handler has interrupted one, as nothing.
guarded_samples::total guarded_samples::sum() noexcept {
  total all;
  if (!is_on() || !lock_.try_acquire()) return all;
  for (const place& s : places_) {
    all.live += s.is == state::live ? s.size : 0;
    all.mapped += s.is != state::unused ? s.bytes : 0;
  }
  lock_.release();
  return all;
}

bool guarded_samples::explain(const void* p, const char* access, const machine_state& where) noexcept {
  // Another thread allocates a sample, or explains a fault of its own: a process that ends now has
  // said nothing. This thread has the lock itself only where a signal came while it was here.
  constexpr std::uint64_t patience_ms = 2000;
  if (!is_on()) return false;
  for (const std::uint64_t begun = linux_os::milliseconds(); !lock_.try_acquire();) {
    if (linux_os::milliseconds() - begun > patience_ms) return false;
    linux_os::relax();
  }
  place* const s = find(p);
  if (s != nullptr && !s->is_told) {
    s->is_told = true;
    text<60> mistake;
    const bool is_before = address_of(p) < address_of(s->block);
    mistake.add(access).add(s->is == state::freed ? " after free" : is_before ? " before a block" : " beyond a block");
    calls here{};
    here.note(where);
    say(*s, mistake.c_str(), p, here);
  }
  lock_.release();
  return s != nullptr;
}

guarded_samples::place* guarded_samples::free_place() noexcept {
  place* best = nullptr;
  for (place& s : places_) {
    if (s.is == state::unused) return &s;
    if (s.is == state::freed && (best == nullptr || s.freed_as < best->freed_as)) best = &s;
  }
  return best;
}

guarded_samples::place* guarded_samples::find(const void* p) noexcept {
  for (place& s : places_) {
    if (s.contains(p)) return &s;
  }
  return nullptr;
}

guarded_samples::place* guarded_samples::find_live(const void* p) noexcept {
  place* const s = find(p);
  return s != nullptr && s->is == state::live && s->block == p ? s : nullptr;
}

void guarded_samples::check_claim(const place& s, const block_claim& said) noexcept {
  const known_block known{.origin = s.origin, .size = s.size, .alignment = s.asked_alignment};
  if (!known.is(said)) mistake(s, known.mistake_in(said), s.block, current_state(), known.beside(said).c_str());
}

/// p lies in the sample. False: a mistake, and the process goes on.
bool guarded_samples::is_live(const place& s, const void* p, const call_names& by) noexcept {
  if (s.is == state::live && s.block == p) return true;
  mistake(s, s.is == state::freed ? by.of_freed : by.of_inner, p, current_state());
  return false;
}

const std::byte* guarded_samples::written_beside(const place& s) noexcept {
  const std::size_t page = linux_os::page_size();
  const auto is_written = [](std::byte b) { return b != filler; };
  const std::byte* const block = s.block;
  const std::byte* const before = std::find_if(static_cast<const std::byte*>(s.begin) + page, block, is_written);
  if (before != block) return before;
  const std::byte* const end = s.begin + s.bytes - page;
  const std::byte* const behind = std::find_if(block + s.size, end, is_written);
  return behind != end ? behind : nullptr;
}

void guarded_samples::say(const place& s, const char* mistake, const void* p, const calls& here,
                          const char* claim) noexcept {
  text<400> line;
  const std::size_t page = linux_os::page_size();
  line.add("heapwright: ").add(mistake).add(": ").add(p).add(" (");
  const std::uintptr_t at = address_of(p), first = address_of(s.block);
  const auto add_bytes = [&](std::uint64_t n, const char* words) {
    line.add(n).add(n == 1 ? " byte" : " bytes").add(words);
  };
  if (claim != nullptr)
    line.add(claim).add("; ");
  else if (at < first)
    add_bytes(first - at, " before");
  else if (at - first >= s.size)
    add_bytes(at - first - s.size, " behind");
  else
    add_bytes(at - first, " into");
  if (claim == nullptr) {
    line.add(" a block of ");
    add_bytes(s.size, "; ");
  }
  const bool is_in_its_pages = s.is == state::live && at - address_of(s.begin) - page < s.bytes - 2 * page;
  if (is_in_its_pages && (at < first || at - first >= s.size)) line.add("found when it is freed; ");
  line.add("a guarded sample)\n").write_to(2);
  misuse_report report(line.c_str());
  here.write("here,", report);
  if (s.is == state::freed) s.freed.write("freed", report);
  s.allocated.write("allocated", report);
}

void guarded_samples::mistake(const place& s, const char* what, const void* p, machine_state from,
                              const char* claim) noexcept {
  calls here{};
  here.note(from);
  say(s, what, p, here, claim);
  if (!the_misuse_policy.goes_on.load(std::memory_order_relaxed)) std::abort();
}

}  // namespace heapwright::process
