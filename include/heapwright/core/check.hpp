// Assertions in three tiers, chosen when the library is built (HEAPWRIGHT_CHECKS, a number; the
// CMake presets set it):
//   0  release  only what costs nothing to test and would corrupt memory otherwise: a double free
//               in a slab
//   1  checked  also the caller's mistakes (double free, foreign pointer, wrong size), reported by
//               name
//   2  debug    also our own mistakes (`invariant`)
// A failed check writes one line to stderr without allocating and aborts.
#pragma once

#include <atomic>
#include <cstdlib>

#include <heapwright/core/text.hpp>

#ifndef HEAPWRIGHT_CHECKS
#define HEAPWRIGHT_CHECKS 0
#endif

namespace heapwright {

/// Whether this build catches the caller's mistakes, and whether it also tests the library itself.
inline constexpr bool checks_callers = HEAPWRIGHT_CHECKS >= 1;
inline constexpr bool checks_itself = HEAPWRIGHT_CHECKS >= 2;

/// How the mistakes of the program end. libheapwright sets it when the process begins.
struct misuse_policy {
  /// After a mistake that does no harm if the call that made it does nothing, the process goes on.
  std::atomic<bool> goes_on{false};
  /// Told each message about a pointer, a line; null: nobody. Called by the thread that found the
  /// mistake. It must not allocate.
  std::atomic<void (*)(const char* line) noexcept> listener{nullptr};
};
#ifdef HEAPWRIGHT_OWNS_MISUSE_POLICY  // libheapwright: it lies in memory that becomes unwritable
[[gnu::visibility("hidden")]] extern constinit misuse_policy the_misuse_policy;
#elif defined(_WIN32)
inline constinit misuse_policy the_misuse_policy;
#else
// Not inline: GCC makes a unique symbol of that, which cannot be there beside that of
// libheapwright.a.
[[gnu::weak]] constinit misuse_policy the_misuse_policy;  // NOLINT(misc-definitions-in-headers)
#endif

/// Writes to stderr: "heapwright: WHAT: POINTER DETAIL", and tells the listener.
[[gnu::cold, gnu::noinline]] inline void say(const char* what, const void* p, const char* detail) noexcept {
  text<400> line;
  line.add("heapwright: ").add(what).add(": ").add(p).add(" ").add(detail).add("\n");
  line.write_to(2);
  if (auto* const listener = the_misuse_policy.listener.load(std::memory_order_acquire)) listener(line.c_str());
}

/// Says so, and ends the process.
[[noreturn, gnu::cold, gnu::noinline]] inline void die(const char* what, const void* p, const char* detail) noexcept {
  say(what, p, detail);
  std::abort();
}

[[noreturn, gnu::cold, gnu::noinline]] inline void die(const char* what) noexcept {
  text<400> line;
  line.add("heapwright: ").add(what).add("\n");
  line.write_to(2);
  std::abort();
}

/// A mistake of the program, found in the call that made it. Returns where the process is to go on:
/// the call does nothing then, or what does no harm.
[[gnu::cold, gnu::noinline]] inline void report_mistake(const char* what, const void* p, const char* detail) noexcept {
  say(what, p, detail);
  if (!the_misuse_policy.goes_on.load(std::memory_order_relaxed)) std::abort();
}

/// What must hold for the library to be right; tested in debug builds.
constexpr void invariant(bool holds, const char* what) noexcept {
  if constexpr (checks_itself) {
    if (!holds) [[unlikely]]
      die(what);
  }
}

}  // namespace heapwright
