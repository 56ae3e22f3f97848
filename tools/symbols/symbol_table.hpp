// The functions that a module's symbols name, sorted once: elfutils itself goes through all symbols
// for each address, which in a large program takes longer than all else.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <elfutils/libdwfl.h>

namespace heapwright::tool {

class symbol_table {
 public:
  explicit symbol_table(Dwfl_Module* module);

  /// As the linker knows it; empty: no symbol reaches there. Of several names the most public, then
  /// the plainest.
  [[nodiscard]] std::string name_at(std::uint64_t pc) const;

 private:
  struct entry {
    std::uint64_t begin, end;
    int index;     ///< in the module's table
    bool is_open;  ///< has no length of its own: reaches to the next symbol, or to the end of its section
    int rank;      ///< more is better
  };

  [[nodiscard]] const char* name_of(const entry& e) const;
  [[nodiscard]] bool is_better(const entry& a, const entry& b) const;

  Dwfl_Module* module_;
  std::vector<entry> entries_;
};

}  // namespace heapwright::tool
