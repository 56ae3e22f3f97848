#include "symbol_table.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace heapwright::tool {
namespace {

bool may_be_function(const GElf_Sym& symbol, GElf_Word section) {
  const auto type = GELF_ST_TYPE(symbol.st_info);
  // Assembly leaves out types.
  return section != SHN_UNDEF && section != SHN_ABS &&
         (type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_NOTYPE);
}

int rank_of(const GElf_Sym& symbol) {
  const auto binding = GELF_ST_BIND(symbol.st_info);
  return (symbol.st_size != 0 ? 4 : 0) + (binding == STB_GLOBAL ? 2 : binding == STB_WEAK ? 1 : 0);
}

}  // namespace

symbol_table::symbol_table(Dwfl_Module* module) : module_(module) {
  const int count = std::max(dwfl_module_getsymtab(module), 0);
  for (int i = 1; i < count; ++i) {
    GElf_Sym symbol;
    GElf_Addr address = 0;
    GElf_Word section = 0;
    Elf* elf = nullptr;
    Dwarf_Addr bias = 0;
    const char* const name = dwfl_module_getsym_info(module, i, &symbol, &address, &section, &elf, &bias);
    // A name with $ in front marks what kind of code follows, on ARM.
    if (name == nullptr || *name == '\0' || *name == '$' || !may_be_function(symbol, section)) continue;
    std::uint64_t end = address + symbol.st_size;
    if (symbol.st_size == 0) {
      GElf_Shdr header;
      if (gelf_getshdr(elf_getscn(elf, section), &header) == nullptr || (header.sh_flags & SHF_EXECINSTR) == 0)
        continue;
      end = header.sh_addr + bias + header.sh_size;
    }
    if (address < end) entries_.push_back({address, end, i, symbol.st_size == 0, rank_of(symbol)});
  }
  std::ranges::stable_sort(entries_, {}, &entry::begin);
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (!entries_[i].is_open) continue;
    const auto next = std::ranges::upper_bound(entries_, entries_[i].begin, {}, &entry::begin);
    if (next != entries_.end()) entries_[i].end = std::min(entries_[i].end, next->begin);
  }
}

std::string symbol_table::name_at(std::uint64_t pc) const {
  // The nearest before that reaches so far. Symbols within symbols are few.
  constexpr unsigned most = 64;
  const entry* best = nullptr;
  auto at = std::ranges::upper_bound(entries_, pc, {}, &entry::begin);
  for (unsigned i = 0; i < most && at != entries_.begin(); ++i) {
    --at;
    if (best != nullptr && at->begin != best->begin) break;
    if (at->end > pc && (best == nullptr || is_better(*at, *best))) best = &*at;
  }
  return best == nullptr ? "" : name_of(*best);
}

const char* symbol_table::name_of(const entry& e) const {
  GElf_Sym symbol;
  GElf_Addr address = 0;
  const char* const name = dwfl_module_getsym_info(module_, e.index, &symbol, &address, nullptr, nullptr, nullptr);
  return name == nullptr ? "" : name;
}

bool symbol_table::is_better(const entry& a, const entry& b) const {
  if (a.rank != b.rank) return a.rank > b.rank;
  // malloc before __libc_malloc.
  const auto plainness = [this](const entry& e) {
    const char* const name = name_of(e);
    return std::make_pair(std::strspn(name, "_"), std::strlen(name));
  };
  return plainness(a) < plainness(b);
}

}  // namespace heapwright::tool
