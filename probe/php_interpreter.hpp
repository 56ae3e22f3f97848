// What a thread executes in PHP: read from the Zend engine's own structures, of PHP 7.4 to 8.4
// without thread safety (ZTS), which is what Debian and most others build.
//
// The engine keeps the innermost frame in a global variable. A frame says what it executes, and
// from where, and whether it is the outermost one that its loop (execute_ex) executes. Frames of
// functions in C are left out: the native stack has them.
//
// One function of the engine is called: get_zend_version, which reads one word.
#pragma once

#include <cstdint>

#include "code_records.hpp"
#include "exported_symbols.hpp"
#include "interpreted_calls.hpp"
#include "memory_reader.hpp"

namespace heapwright::probe {

class php_interpreter {
 public:
  /// The code of its loop; empty: it is not in this file.
  [[nodiscard]] code_range find_in(const exported_symbols& symbols) noexcept;

  /// What the calling thread, which is within the loop, executes. False: what was found is not
  /// PHP's.
  [[nodiscard]] bool walk(memory_reader& by, code_records& codes, interpreted_calls& calls) const noexcept;

 private:
  using text_function = const char*() noexcept;

  [[nodiscard]] bool read_line(memory_reader& by, std::uintptr_t frame, std::uint32_t& line) const noexcept;

  std::uintptr_t globals_ = 0;
  text_function* version_ = nullptr;
};

}  // namespace heapwright::probe
