// From an address to the unit of translation, to the function in it, to the calls inlined there,
// downwards in the tree that DWARF is.
#include "debug_file.hpp"

#include <algorithm>

#include <dwarf.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include "demangle.hpp"

namespace heapwright::tool {
namespace {

const Dwfl_Callbacks callbacks{dwfl_build_id_find_elf, dwfl_standard_find_debuginfo, dwfl_offline_section_address,
                               nullptr};

/// Scopes that hold functions but have no code of their own.
bool holds_functions(int tag) {
  switch (tag) {
    case DW_TAG_namespace:
    case DW_TAG_module:
    case DW_TAG_structure_type:
    case DW_TAG_class_type:
    case DW_TAG_union_type:
    case DW_TAG_enumeration_type: return true;  // Rust writes methods into all kinds of types
    default: return false;
  }
}

/// No sane compiler nests deeper; hostile files do.
constexpr unsigned deepest = 256;

template <class Range>
void add_ranges(Dwarf_Die& die, std::vector<Range>& to) {
  Dwarf_Addr base = 0, begin = 0, end = 0;
  for (std::ptrdiff_t at = 0; (at = dwarf_ranges(&die, at, &base, &begin, &end)) > 0;)
    if (begin < end) to.push_back({begin, end, die});
}

template <class Range>
void collect_functions(Dwarf_Die parent, std::vector<Range>& to, unsigned depth) {
  Dwarf_Die die;
  if (depth > deepest || dwarf_child(&parent, &die) != 0) return;
  do {
    const int tag = dwarf_tag(&die);
    if (tag == DW_TAG_subprogram) {
      add_ranges(die, to);
      if (dwarf_hasattr(&die, DW_AT_inline) == 0) collect_functions(die, to, depth + 1);  // functions within functions
    } else if (holds_functions(tag)) {
      collect_functions(die, to, depth + 1);
    }
  } while (dwarf_siblingof(&die, &die) == 0);
}

template <class Range>
void sort_ranges(std::vector<Range>& all) {
  std::ranges::stable_sort(all, {}, &Range::begin);
}

/// The range with this address that begins last: the innermost, where functions are within
/// functions.
template <class Range>
const Range* find_range(const std::vector<Range>& all, Dwarf_Addr pc) {
  constexpr unsigned most_overlapping = 64;
  auto at = std::ranges::upper_bound(all, pc, {}, &Range::begin);
  for (unsigned i = 0; i < most_overlapping && at != all.begin(); ++i)
    if ((--at)->end > pc) return &*at;
  return nullptr;
}

/// Where the functions are: a unit may be split, so that only its skeleton is in this file.
Dwarf_Die with_functions(Dwarf_Die unit) {
  Dwarf_Die split;
  std::uint8_t type = 0;
  const bool is_split = dwarf_cu_info(unit.cu, nullptr, &type, nullptr, &split, nullptr, nullptr, nullptr) == 0 &&
                        type == DW_UT_skeleton && split.cu != nullptr;
  return is_split ? split : unit;
}

std::optional<std::string> text_attribute(Dwarf_Die& die, unsigned name) {
  Dwarf_Attribute attribute;
  const char* const text = dwarf_formstring(dwarf_attr_integrate(&die, name, &attribute));
  return text == nullptr ? std::nullopt : std::optional<std::string>(text);
}

std::string name_of(Dwarf_Die& function, const std::string& symbol) {
  for (const unsigned name : {DW_AT_linkage_name, DW_AT_MIPS_linkage_name})
    if (const auto text = text_attribute(function, name)) return demangled(*text);
  // Where debugging information has no more than lines, the symbol has the full name.
  const auto text = text_attribute(function, DW_AT_name);
  if (!text) return symbol;
  return symbol.size() > text->size() && symbol.ends_with("::" + *text) ? symbol : *text;
}

std::string path_of(Dwarf_Die& unit, const char* file) {
  if (file == nullptr) return "";
  if (*file == '/') return file;
  const auto directory = text_attribute(unit, DW_AT_comp_dir);
  return directory ? *directory + "/" + file : file;
}

void set_line_of_call(source_frame& caller, Dwarf_Die& call, Dwarf_Die& unit) {
  Dwarf_Attribute attribute;
  Dwarf_Word number = 0;
  if (dwarf_formudata(dwarf_attr(&call, DW_AT_call_line, &attribute), &number) == 0)
    caller.line = static_cast<unsigned>(number);
  Dwarf_Die own;
  Dwarf_Files* files = nullptr;
  std::size_t count = 0;
  if (dwarf_diecu(&call, &own, nullptr, nullptr) != nullptr && dwarf_getsrcfiles(&own, &files, &count) == 0 &&
      dwarf_formudata(dwarf_attr(&call, DW_AT_call_file, &attribute), &number) == 0 && number < count)
    caller.file = path_of(unit, dwarf_filesrc(files, number, nullptr, nullptr));
}

/// The calls inlined into a function at this address, the outermost first.
std::vector<Dwarf_Die> inlined_calls(Dwarf_Die function, Dwarf_Addr pc) {
  std::vector<Dwarf_Die> calls;
  Dwarf_Die die;
  unsigned depth = 0;
  for (int there = dwarf_child(&function, &die); there == 0 && depth < deepest;) {
    const int tag = dwarf_tag(&die);
    const bool has_code = tag == DW_TAG_inlined_subroutine || tag == DW_TAG_lexical_block;
    if (has_code && dwarf_haspc(&die, pc) > 0) {
      if (tag == DW_TAG_inlined_subroutine) calls.push_back(die);
      there = dwarf_child(&die, &die);
      ++depth;
    } else {
      there = dwarf_siblingof(&die, &die);
    }
  }
  return calls;
}

}  // namespace

debug_file::debug_file(const segment::module_figures& module) : session_(dwfl_begin(&callbacks)) {
  struct stat about {};
  // Opening a FIFO would block.
  if (!session_ || stat(module.path.c_str(), &about) != 0 || !S_ISREG(about.st_mode)) return;
  dwfl_report_begin(session_.get());
  const char* const path = module.path.c_str();
  Dwfl_Module* const reported = dwfl_report_elf(session_.get(), path, path, -1, module.base, true);
  if (dwfl_report_end(session_.get(), nullptr, nullptr) != 0 || reported == nullptr) return;

  Dwarf_Addr begin = 0, end = 0;
  dwfl_module_info(reported, nullptr, &begin, &end, nullptr, nullptr, nullptr, nullptr);
  constexpr Dwarf_Addr page = 64 * 1024;  // the longest: mappings are of whole pages, begin and end need not be
  const bool fits = module.begin < end && module.end > begin && module.begin + page > begin && module.end < end + page;
  if (fits) module_ = reported;
}

std::vector<source_frame> debug_file::frames_at(std::uint64_t pc) {
  if (module_ == nullptr) return {};
  const std::string symbol = symbol_at(pc);
  std::vector<source_frame> frames;
  Dwarf_Die unit;
  Dwarf_Addr bias = 0;
  source_frame innermost{symbol};
  if (find_unit(pc, unit, bias)) {
    if (Dwarf_Line* const line = dwarf_getsrc_die(&unit, pc - bias)) {
      int number = 0;
      dwarf_lineno(line, &number);
      innermost.line = number > 0 ? static_cast<unsigned>(number) : 0;
      innermost.file = path_of(unit, dwarf_linesrc(line, nullptr, nullptr));
    }
    if (const range* const function = find_range(functions_of(unit), pc - bias)) {
      Dwarf_Die die = function->die;
      frames.push_back({name_of(die, symbol)});
      for (Dwarf_Die& call : inlined_calls(die, pc - bias)) {
        set_line_of_call(frames.back(), call, unit);
        frames.push_back({.function = name_of(call, ""), .is_inlined = true});
      }
      frames.back().file = innermost.file;
      frames.back().line = innermost.line;
      std::erase_if(frames, [](const source_frame& f) { return f.is_inlined && f.function.empty(); });
      if (frames.front().function.empty()) frames.clear();
    }
  }
  if (frames.empty() && !symbol.empty()) frames.push_back(innermost);
  std::ranges::reverse(frames);
  return frames;
}

bool debug_file::find_unit(std::uint64_t pc, Dwarf_Die& unit, Dwarf_Addr& bias) {
  Dwarf_Die* const nearest = dwfl_module_addrdie(module_, pc, &bias);
  if (nearest != nullptr && dwarf_haspc(nearest, pc - bias) > 0) {
    unit = *nearest;
    return true;
  }
  // That looks in .debug_aranges alone, which GCC writes, but neither Clang nor Rust nor Go does;
  // and it takes what lies behind a unit to be of that unit.
  if (dwfl_module_getdwarf(module_, &bias) == nullptr) return false;
  const range* const found = find_range(units(), pc - bias);
  if (found != nullptr) unit = found->die;
  return found != nullptr;
}

const debug_file::ranges& debug_file::units() {
  if (has_units_) return units_;
  has_units_ = true;
  Dwarf_Addr bias = 0;
  for (Dwarf_Die* unit = nullptr; (unit = dwfl_module_nextcu(module_, unit, &bias)) != nullptr;)
    add_ranges(*unit, units_);
  sort_ranges(units_);
  return units_;
}

const debug_file::ranges& debug_file::functions_of(const Dwarf_Die& unit) {
  Dwarf_Die die = unit;
  const auto [entry, is_new] = functions_.try_emplace(dwarf_dieoffset(&die));
  if (is_new) {
    collect_functions(with_functions(unit), entry->second, 0);
    sort_ranges(entry->second);
  }
  return entry->second;
}

std::string debug_file::symbol_at(std::uint64_t pc) {
  if (!symbols_) symbols_.emplace(module_);
  return demangled(symbols_->name_at(pc));
}

std::string debug_file::build_id() const {
  Dwarf_Addr bias = 0;
  const unsigned char* bits = nullptr;
  GElf_Addr address = 0;
  if (module_ == nullptr || dwfl_module_getelf(module_, &bias) == nullptr) return "";
  const int length = dwfl_module_build_id(module_, &bits, &address);
  std::string text;
  for (int i = 0; i < length; ++i) text += fmt::format("{:02x}", bits[i]);
  return text;
}

std::uint64_t debug_file::file_offset(std::uint64_t address) const {
  Dwarf_Addr bias = 0;
  Elf* const elf = module_ == nullptr ? nullptr : dwfl_module_getelf(module_, &bias);
  std::size_t count = 0;
  if (elf == nullptr || elf_getphdrnum(elf, &count) != 0) return 0;
  for (std::size_t i = 0; i < count; ++i) {
    GElf_Phdr segment;
    if (gelf_getphdr(elf, static_cast<int>(i), &segment) == nullptr || segment.p_type != PT_LOAD) continue;
    // Mappings begin with a page, segments anywhere in it.
    const GElf_Addr within_page = segment.p_align > 1 ? segment.p_vaddr % segment.p_align : 0;
    const GElf_Addr begin = segment.p_vaddr - within_page + bias;
    if (address >= begin && address - begin < segment.p_memsz + within_page && segment.p_offset >= within_page)
      return segment.p_offset - within_page + (address - begin);
  }
  return 0;
}

}  // namespace heapwright::tool
