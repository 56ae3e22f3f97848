// Names for the addresses in call stacks: of the functions, also of those that were inlined, and of
// the lines of source.
//
// Works from what a segment says of the modules, so for a process that has ended too. Debugging
// information is found as debuggers find it: in the file itself, by build id and by debug link
// under /usr/lib/debug, next to the file, from debuginfod where DEBUGINFOD_URLS asks for that.
// Without it, names come from the symbol table, and without that there is still the offset in the
// file. A file that is gone, or that another has taken the place of so that the code would not fit
// into it, gives offsets.
//
// What it costs: the first address in a module opens its files; the first in a unit of translation
// reads the unit's functions and lines, as a rule milliseconds, tens of them for a large one;
// another in the same unit microseconds. Each address is looked up once, then kept. Memory grows by
// what was read. Not for several threads at once.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "perf_map.hpp"
#include "segment_reader.hpp"

namespace heapwright::tool {

struct source_frame {
  std::string function;
  std::string file = {};  ///< empty: not known
  unsigned line = 0;
  bool is_inlined = false;

  bool operator==(const source_frame&) const = default;
};

struct location {
  std::uint64_t address = 0;  ///< the return address, or an interpreted call (segment.hpp)
  bool is_script = false;     ///< an interpreted call, or one of JavaScript that V8 has compiled
  std::string module;         ///< path; empty: of no module
  /// Innermost inlined first, the real function last. Never empty: code without a name is
  /// `module+0x1234` or `0x7f0012345678`.
  std::vector<source_frame> frames;
  bool is_known = false;  ///< the function has a name
};

/// A module as profiles describe it.
struct mapped_module {
  segment::module_figures figures;
  std::uint64_t file_offset = 0;  ///< of what is mapped at its begin
  std::string build_id = {};      ///< in hexadecimal; empty: none, or the file cannot be read
};

class symbolizer {
 public:
  /// `process_id`: as the process sees itself. `root`: what its paths begin with here; empty for /.
  symbolizer(const std::vector<segment::module_figures>& modules, std::uint32_t process_id, std::string root = {});
  symbolizer(symbolizer&&) noexcept;
  symbolizer& operator=(symbolizer&&) noexcept;
  ~symbolizer();

  /// Stays where it is as long as the symbolizer; is filled in later if it is of code that becomes
  /// known later.
  const location& resolve(std::uint64_t return_address);

  /// All that are known now: those that are new are added, and win where they overlap older ones.
  void add_modules(const std::vector<segment::module_figures>& modules);
  /// All that are known now; null: none.
  void use_codes(std::shared_ptr<const segment::interpreted_codes> codes);

  [[nodiscard]] std::vector<segment::module_figures> modules() const;
  /// The module of an address; null: none.
  [[nodiscard]] const segment::module_figures* module_of(std::uint64_t return_address) const;

  [[nodiscard]] mapped_module describe(const segment::module_figures& module);

 private:
  struct known_module;
  struct answer {
    location where;
    unsigned generation = 0;  ///< of what was known when it was looked for
  };

  [[nodiscard]] known_module* find(std::uint64_t pc) const;
  void look_up(location& where);
  void look_up_interpreted(location& where) const;

  std::string root_;
  std::vector<std::unique_ptr<known_module>> modules_;
  perf_map code_made_;
  std::shared_ptr<const segment::interpreted_codes> codes_;
  std::unordered_map<std::uint64_t, answer> answers_;
  unsigned generation_ = 1;
};

}  // namespace heapwright::tool
