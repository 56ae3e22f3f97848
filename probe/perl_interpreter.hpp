// What a thread executes in Perl: read from the interpreter's own structures, of Perl 5.36 and
// 5.40 as Debian builds them, with threads.
//
// Perl has no list of frames. The running statement has its file and its line. A stack of contexts
// says which subs and evals lead there, and from which statement each was called. What was
// called from C, by a loop of its own (Perl_runops_standard), has nothing to return to.
//
// Each thread has an interpreter of its own, under a key that Perl exports.
#pragma once

#include <cstdint>

#include <pthread.h>

#include "code_records.hpp"
#include "exported_symbols.hpp"
#include "interpreted_calls.hpp"
#include "memory_reader.hpp"

namespace heapwright::probe {

class perl_interpreter {
 public:
  /// The code of its loop; empty: it is not in this file, or is of another version.
  [[nodiscard]] code_range find_in(const exported_symbols& symbols) noexcept;

  /// What the calling thread, which is within the loop, executes. False: what was found is not
  /// Perl's.
  [[nodiscard]] bool walk(memory_reader& by, code_records& codes, interpreted_calls& calls) const noexcept;

  /// Whether a return address is where the stack of contexts has been moved, and the old one is
  /// still referred to. O(1).
  [[nodiscard]] bool moves_contexts(std::uintptr_t pc) const noexcept {
    return moving_.begin < pc && pc <= moving_.end;
  }

 private:
  const pthread_key_t* key_ = nullptr;
  code_range moving_;
};

}  // namespace heapwright::probe
