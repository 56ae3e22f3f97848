// One module with its symbols and its debugging information, through elfutils. Each has a session
// of elfutils' of its own: so modules may overlap, as those do that were loaded one after the
// other, and one that cannot be read does not concern the others.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <elfutils/libdwfl.h>

#include "symbol_table.hpp"
#include "symbols.hpp"

namespace heapwright::tool {

class debug_file {
 public:
  /// A file that cannot be read, or that does not have code where the module has, is as one without
  /// symbols.
  explicit debug_file(const segment::module_figures& module);

  /// The functions at `pc`, innermost first; empty: no name is known.
  [[nodiscard]] std::vector<source_frame> frames_at(std::uint64_t pc);

  [[nodiscard]] std::string build_id() const;
  /// Where in the file is what is mapped at `address`; 0 if that is not known.
  [[nodiscard]] std::uint64_t file_offset(std::uint64_t address) const;

 private:
  struct session_end {
    void operator()(Dwfl* session) const noexcept { dwfl_end(session); }
  };
  /// Addresses here are as the file's DWARF has them.
  struct range {
    Dwarf_Addr begin, end;
    Dwarf_Die die;  ///< a unit or a function
  };
  using ranges = std::vector<range>;  ///< sorted by begin

  [[nodiscard]] bool find_unit(std::uint64_t pc, Dwarf_Die& unit, Dwarf_Addr& bias);
  [[nodiscard]] const ranges& units();
  [[nodiscard]] const ranges& functions_of(const Dwarf_Die& unit);
  [[nodiscard]] std::string symbol_at(std::uint64_t pc);

  std::unique_ptr<Dwfl, session_end> session_;
  Dwfl_Module* module_ = nullptr;  ///< null: cannot be read
  std::optional<symbol_table> symbols_;
  bool has_units_ = false;
  ranges units_;
  std::unordered_map<Dwarf_Off, ranges> functions_;  ///< by where their unit is
};

}  // namespace heapwright::tool
