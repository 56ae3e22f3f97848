// libFuzzer: the input is an ELF file, with or without debugging information, as a module of an
// observed process and as a program to be run.
#include "debug_file.hpp"

#include "elf_file.hpp"
#include "scratch_file.hpp"

using namespace heapwright;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t length) {
  static fuzzing::scratch_file file;
  file.set(data, length);
  if (const auto elf = tool::elf_file::open(file.path())) {
    (void)elf->find("function");
    (void)elf->content("answer");
    (void)elf->exports("malloc");
  }
  constexpr std::uint64_t base = 0x7f0000000000;
  tool::debug_file debug({.begin = base, .end = base + 0x100000, .base = base, .path = file.path()});
  for (std::uint64_t at = 0; at < 0x5000; at += 0x3f0) (void)debug.frames_at(base + at);
  (void)debug.build_id();
  (void)debug.file_offset(base + 0x10);
  return 0;
}
