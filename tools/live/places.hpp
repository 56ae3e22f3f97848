// Return addresses as places in the source, numbered: a place is sent once, however many stacks go
// through it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "function_patterns.hpp"
#include "segment_reader.hpp"

namespace heapwright::tool {

struct place {
  std::string function;  ///< "module+0x12" where nothing better is known
  std::string file;      ///< empty: not known
  unsigned line = 0;
  std::string module;  ///< path of the file that the code was loaded from
  bool is_inlined = false;
  bool is_script = false;  ///< of a language with an interpreter: Python, PHP, Ruby, Perl, JavaScript
};

/// False where `function` is a module and an offset, or an address: no symbol is known there.
[[nodiscard]] bool has_name(const place& p);

/// Whether the code has its names from a file like /tmp/perf-1234.map, written by the program that
/// has made it.
[[nodiscard]] bool is_made_at_run_time(const std::string& module);

enum class frame_kind : std::uint8_t { wrapper, nameless, other };

/// A script, or an extension in C, that comes with its language (language_files.hpp).
[[nodiscard]] bool is_of_library(const std::string& file);

/// What the code of a place came with: a package of a language ("numpy"), a language's
/// own library or interpreter ("python", "rust", "zig"), the file of a program or a library
/// ("libc.so.6"), or the folder of a script ("app/").
[[nodiscard]] std::string package_of(const place& p);

/// The index of the frame that a person takes for the site: the first one that is no wrapper, and
/// no function without a name that a wrapper calls, as stripped programs have. 0 if there is none.
[[nodiscard]] std::size_t site_among(const std::vector<frame_kind>& innermost_first);

class symbolizer;

/// May be used by several threads at once, as a symbolizer may not.
class places_book {
 public:
  /// `wrappers`: functions that allocate for others, beside those that are known.
  explicit places_book(function_patterns wrappers = {});
  ~places_book();

  /// Numbers of the places at a return address, the innermost inlined one first; never empty.
  /// Modules and process are those that the stack is of.
  [[nodiscard]] std::vector<std::uint32_t> at(std::uint64_t return_address, const segment::snapshot& figures);

  [[nodiscard]] place operator[](std::uint32_t number) const;

  /// Allocates for others: what a person looks for lies further out.
  [[nodiscard]] bool is_wrapper(std::uint32_t number) const;

  /// Where the allocation is in the program's own code: an index, by site_among. Where scripts
  /// call, the interpreter's own functions allocate for these, and the language's library for the
  /// others.
  [[nodiscard]] std::size_t site_in(const std::vector<std::uint32_t>& places) const;

  /// The call that leads to the site, and tells more than the site does: an index; the number of
  /// places: none. Of a site that a script has called into, the call in the script.
  [[nodiscard]] std::size_t caller_of(std::size_t site, const std::vector<std::uint32_t>& places) const;

  /// Of a stack with calls in scripts, the innermost first: without the interpreter's own
  /// functions, and without what is outside the outermost of these calls. Another stack stays as it
  /// is.
  [[nodiscard]] std::vector<std::uint32_t> without_interpreter(std::vector<std::uint32_t> places) const;

  /// A place for each run of places of one package.
  [[nodiscard]] std::vector<std::uint32_t> by_package(const std::vector<std::uint32_t>& places);

  /// The places of the program's own code; what libraries do between them is one place for each
  /// package. What is outside the outermost of its own, and functions that allocate for others, are
  /// left out. Of a stack without code of its own: by_package.
  [[nodiscard]] std::vector<std::uint32_t> with_libraries_folded(const std::vector<std::uint32_t>& places);

  [[nodiscard]] bool has_script(const std::vector<std::uint32_t>& places) const;

  /// The module that has the interpreter of scripts; empty: none is known.
  [[nodiscard]] std::string interpreter() const;
  /// Until this book knows one itself.
  void suppose_interpreter(const std::string& module);

  /// Of a place that another book has found.
  [[nodiscard]] std::uint32_t number_for(const place& p);

  /// Whether a place is in this file of source.
  [[nodiscard]] bool has_file(const std::string& file) const;

  /// Lets nobody else resolve meanwhile.
  void use_symbols(const segment::snapshot& figures, const std::function<void(symbolizer&)>& use);

 private:
  void know(const segment::snapshot& figures);
  void know_interpreter(const segment::snapshot& figures);
  void set_interpreter(const std::string& module);
  [[nodiscard]] bool is_interpreters(std::uint32_t number) const;
  [[nodiscard]] bool is_own_script(std::uint32_t number) const;
  [[nodiscard]] bool is_of_program(std::uint32_t number) const;
  [[nodiscard]] std::uint32_t package_at(std::uint32_t number);
  void add_package(std::vector<std::uint32_t>& to, std::uint32_t number);
  std::uint32_t number_of(const place& p);
  [[nodiscard]] bool is_wrapper(const place& p) const;

  mutable std::mutex mutex_;
  std::unique_ptr<symbolizer> symbols_;
  std::size_t modules_known_ = 0;
  std::vector<place> all_;
  const function_patterns wrappers_;
  std::vector<bool> wrapper_;
  std::string interpreter_;  ///< the module that has it, or is supposed to; empty: none is known
  bool has_met_interpreter_ = false;
  std::string program_;  ///< the module that was executed
  std::vector<bool> of_library_;
  std::vector<bool> of_interpreter_;
  std::unordered_map<std::string, std::uint32_t> numbers_;
  std::unordered_map<std::uint32_t, std::uint32_t> packages_;  ///< places for them, by places of code
  std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> at_;
};

}  // namespace heapwright::tool
