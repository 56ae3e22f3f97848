// One ELF file on disk: what kind of program it is, which symbols it defines, and the bytes behind
// a symbol.
//
// Addresses are those in the file; in a process they are shifted by the load bias. A file is read
// once, when opened, and the object keeps it open: its content stays readable when the path is
// replaced by an upgrade.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "descriptor.hpp"

struct Elf;

namespace heapwright::tool {

class elf_file {
 public:
  struct symbol {
    std::uint64_t address;
    std::uint64_t size;
  };

  /// Nothing if the file cannot be opened or is not ELF.
  static std::optional<elf_file> open(const std::string& path);

  /// Can a process of this machine's own kind (word size and instruction set of this tool) load it?
  [[nodiscard]] bool is_native() const noexcept { return native_; }
  [[nodiscard]] bool is_shared_object() const noexcept { return shared_object_; }
  /// The dynamic loader the file asks for; empty for a static program and for a library.
  [[nodiscard]] const std::string& loader() const noexcept { return loader_; }

  /// Was it made by Go's compiler? Its marks stay when a program is stripped.
  [[nodiscard]] bool is_go() const { return has_section(".go.buildinfo") || has_section(".note.go.buildid"); }
  /// Of a program made by Go's compiler: does it have C code (cgo)? Go's own linker then leaves the
  /// work to that of C, which puts in what C's start-up is made of; stripped or not.
  [[nodiscard]] bool is_go_with_c() const { return is_go() && has_section(".init"); }

  /// Is the symbol there for others to bind to?
  [[nodiscard]] bool exports(const char* name) const { return find(name, true).has_value(); }
  /// A defined symbol, from the dynamic table or else from the static one.
  [[nodiscard]] std::optional<symbol> find(const char* name) const;
  /// The initial content of a symbol, as the file holds it; empty if the symbol is missing or has
  /// none (.bss).
  [[nodiscard]] std::string content(const char* name) const;

 private:
  struct elf_end {
    void operator()(Elf* elf) const noexcept;
  };

  elf_file(descriptor file, Elf* elf) : file_(std::move(file)), elf_(elf) {}
  [[nodiscard]] std::optional<symbol> find(const char* name, bool dynamic) const;
  [[nodiscard]] bool has_section(const char* name) const;

  descriptor file_;
  std::unique_ptr<Elf, elf_end> elf_;
  bool native_ = false;
  bool shared_object_ = false;
  std::string loader_;
};

}  // namespace heapwright::tool
