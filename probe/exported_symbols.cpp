#include "exported_symbols.hpp"

#include <cstring>

#include "memory_reader.hpp"

namespace heapwright::probe {
namespace {

std::uint32_t gnu_hash(const char* name) noexcept {
  std::uint32_t hash = 5381;
  for (; *name != '\0'; ++name) hash = hash * 33 + static_cast<unsigned char>(*name);
  return hash;
}

}  // namespace

exported_symbols::exported_symbols(const unwind::code_object& of) noexcept : base_(of.base) {
  if (!is_readable(of.begin)) return;
  const auto& header = *reinterpret_cast<const ElfW(Ehdr)*>(of.begin);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return;
  const auto* const parts = reinterpret_cast<const ElfW(Phdr)*>(of.begin + header.e_phoff);
  const ElfW(Dyn)* entry = nullptr;
  for (unsigned i = 0; i < header.e_phnum; ++i)
    if (parts[i].p_type == PT_DYNAMIC) entry = reinterpret_cast<const ElfW(Dyn)*>(of.base + parts[i].p_vaddr);
  if (entry == nullptr) return;
  // glibc's loader has put addresses in the place of most of the file's own; musl's has not.
  const auto address = [&](std::uintptr_t value) { return value < of.begin ? of.base + value : value; };
  for (; entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == DT_GNU_HASH) hash_table_ = reinterpret_cast<const std::uint32_t*>(address(entry->d_un.d_ptr));
    if (entry->d_tag == DT_SYMTAB) symbols_ = address(entry->d_un.d_ptr);
    if (entry->d_tag == DT_STRTAB) names_ = address(entry->d_un.d_ptr);
  }
}

/// The table: four counts, a Bloom filter of words, buckets, and chains of hashes of which the last
/// one is odd.
const ElfW(Sym) * exported_symbols::symbol(const char* name) const noexcept {
  if (hash_table_ == nullptr || symbols_ == 0 || names_ == 0) return nullptr;
  const std::uint32_t bucket_count = hash_table_[0], first = hash_table_[1], filter_words = hash_table_[2];
  if (bucket_count == 0) return nullptr;
  const std::uint32_t* const buckets = hash_table_ + 4 + filter_words * (sizeof(std::uintptr_t) / 4);
  const std::uint32_t* const chains = buckets + bucket_count;
  const std::uint32_t hash = gnu_hash(name);
  std::uint32_t i = buckets[hash % bucket_count];
  if (i < first) return nullptr;
  for (;; ++i) {
    const std::uint32_t of_symbol = chains[i - first];
    const auto& is = reinterpret_cast<const ElfW(Sym)*>(symbols_)[i];
    if ((of_symbol | 1) == (hash | 1) && is.st_shndx != SHN_UNDEF &&
        std::strcmp(reinterpret_cast<const char*>(names_ + is.st_name), name) == 0)
      return &is;
    if ((of_symbol & 1) != 0) return nullptr;
  }
}

const void* exported_symbols::find(const char* name) const noexcept {
  const ElfW(Sym)* const is = symbol(name);
  return is == nullptr ? nullptr : reinterpret_cast<const void*>(base_ + is->st_value);
}

code_range exported_symbols::code_of(const char* name) const noexcept {
  const ElfW(Sym)* const is = symbol(name);
  if (is == nullptr) return {};
  return {base_ + is->st_value, base_ + is->st_value + is->st_size};
}

}  // namespace heapwright::probe
