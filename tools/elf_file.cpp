// Reading through libelf, which copes with either byte order and word size; only the questions are
// ours.
#include "elf_file.hpp"

#include <algorithm>
#include <cstring>

#include <gelf.h>
#include <link.h>
#include <sys/stat.h>

namespace heapwright::tool {
namespace {

#if defined(__x86_64__)
constexpr unsigned own_machine = EM_X86_64;
#elif defined(__aarch64__)
constexpr unsigned own_machine = EM_AARCH64;
#else
#error "name this machine's ELF number here"
#endif
constexpr unsigned char own_class = sizeof(ElfW(Addr)) == 8 ? ELFCLASS64 : ELFCLASS32;

}  // namespace

void elf_file::elf_end::operator()(Elf* elf) const noexcept { ::elf_end(elf); }

std::optional<elf_file> elf_file::open(const std::string& path) {
  static const bool ready = elf_version(EV_CURRENT) != EV_NONE;
  descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat about {};
  // A device or a FIFO would block or have effects; only a regular file is worth a look.
  if (!ready || !file || fstat(file.get(), &about) != 0 || !S_ISREG(about.st_mode)) return std::nullopt;

  Elf* const elf = elf_begin(file.get(), ELF_C_READ, nullptr);
  elf_file result(std::move(file), elf);
  GElf_Ehdr header;
  if (elf == nullptr || elf_kind(elf) != ELF_K_ELF || gelf_getehdr(elf, &header) == nullptr) return std::nullopt;
  result.native_ = header.e_machine == own_machine && header.e_ident[EI_CLASS] == own_class;
  result.shared_object_ = header.e_type == ET_DYN;

  std::size_t segments = 0;
  if (elf_getphdrnum(elf, &segments) != 0) return std::nullopt;
  for (std::size_t i = 0; i < segments; ++i) {
    GElf_Phdr segment;
    if (gelf_getphdr(elf, static_cast<int>(i), &segment) == nullptr) continue;
    if (segment.p_type == PT_INTERP && segment.p_filesz < 4096) {
      std::string loader(segment.p_filesz, '\0');
      if (pread(result.file_.get(), loader.data(), loader.size(), static_cast<off_t>(segment.p_offset)) ==
          static_cast<ssize_t>(loader.size()))
        result.loader_ = loader.substr(0, loader.find('\0'));
    }
  }
  return result;
}

bool elf_file::has_section(const char* name) const {
  std::size_t names = 0;
  if (elf_getshdrstrndx(elf_.get(), &names) != 0) return false;
  for (Elf_Scn* section = nullptr; (section = elf_nextscn(elf_.get(), section)) != nullptr;) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == nullptr) continue;
    const char* const text = elf_strptr(elf_.get(), names, header.sh_name);
    if (text != nullptr && std::strcmp(text, name) == 0) return true;
  }
  return false;
}

std::optional<elf_file::symbol> elf_file::find(const char* name, bool dynamic) const {
  for (Elf_Scn* section = nullptr; (section = elf_nextscn(elf_.get(), section)) != nullptr;) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == nullptr || header.sh_entsize == 0) continue;
    if (header.sh_type != (dynamic ? SHT_DYNSYM : SHT_SYMTAB)) continue;
    Elf_Data* const data = elf_getdata(section, nullptr);
    if (data == nullptr) continue;
    const int count = static_cast<int>(header.sh_size / header.sh_entsize);
    for (int i = 0; i < count; ++i) {
      GElf_Sym entry;
      if (gelf_getsym(data, i, &entry) == nullptr || entry.st_shndx == SHN_UNDEF) continue;
      const char* const text = elf_strptr(elf_.get(), header.sh_link, entry.st_name);
      if (text != nullptr && std::strcmp(text, name) == 0) return symbol{entry.st_value, entry.st_size};
    }
  }
  return std::nullopt;
}

std::optional<elf_file::symbol> elf_file::find(const char* name) const {
  const auto dynamic = find(name, true);
  return dynamic ? dynamic : find(name, false);
}

std::string elf_file::content(const char* name) const {
  const auto wanted = find(name);
  std::size_t segments = 0;
  if (!wanted || elf_getphdrnum(elf_.get(), &segments) != 0) return {};
  for (std::size_t i = 0; i < segments; ++i) {
    GElf_Phdr segment;
    if (gelf_getphdr(elf_.get(), static_cast<int>(i), &segment) == nullptr || segment.p_type != PT_LOAD) continue;
    if (wanted->address < segment.p_vaddr || wanted->address + wanted->size > segment.p_vaddr + segment.p_filesz)
      continue;
    std::string bytes(wanted->size, '\0');
    const auto offset = static_cast<off_t>(segment.p_offset + (wanted->address - segment.p_vaddr));
    if (pread(file_.get(), bytes.data(), bytes.size(), offset) == static_cast<ssize_t>(bytes.size())) return bytes;
  }
  return {};
}

}  // namespace heapwright::tool
