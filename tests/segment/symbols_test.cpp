// What code is called: with all debugging information, with less, with none; made at run time;
// gone.
#include "symbols.hpp"

#include <fstream>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "demangle.hpp"
#include "loaded_code.hpp"
#include "segment_builder.hpp"

namespace heapwright::tool {
namespace {

/// An id that no process has.
std::uint32_t no_process() { return 4'000'000'000u + static_cast<std::uint32_t>(getpid()); }

void expect_all_known(const loaded_code& code, const location& where) {
  EXPECT_TRUE(where.is_known);
  ASSERT_EQ(where.frames.size(), 2u) << where.frames[0].function;
  const source_frame& inlined = where.frames[0];
  const source_frame& outer = where.frames[1];
  EXPECT_EQ(inlined.function, "known::widget::inlined");
  EXPECT_TRUE(inlined.is_inlined);
  EXPECT_EQ(inlined.line, static_cast<unsigned>(code.line_in_inlined));
  EXPECT_TRUE(inlined.file.ends_with("/fixtures/known_code.cpp")) << inlined.file;
  EXPECT_EQ(outer.function, "known::widget::outer");
  EXPECT_FALSE(outer.is_inlined);
  EXPECT_EQ(outer.line, static_cast<unsigned>(code.line_in_outer));
  EXPECT_EQ(outer.file, inlined.file);
}

class known_forms : public testing::TestWithParam<const char*> {};

TEST_P(known_forms, give_functions_files_and_lines) {
  const loaded_code code(fixture(GetParam()));
  symbolizer symbols({code.module}, no_process());
  const location& where = symbols.resolve(code.address);
  EXPECT_EQ(where.address, code.address);
  EXPECT_EQ(where.module, code.module.path);
  expect_all_known(code, where);
  EXPECT_EQ(&symbols.resolve(code.address), &where) << "looked up once";
}

INSTANTIATE_TEST_SUITE_P(symbols, known_forms,
                         testing::Values("known_code.so", "dwarf_4.so", "no_aranges.so", "mixed.so", "split.so",
                                         "linked.so"));

TEST(symbols, without_debugging_information_come_from_the_symbol_table) {
  const loaded_code code(fixture("symbol_table.so"));
  symbolizer symbols({code.module}, no_process());
  const location& where = symbols.resolve(code.address);
  ASSERT_EQ(where.frames.size(), 1u);
  EXPECT_EQ(where.frames[0].function, "known::widget::outer");
  EXPECT_EQ(where.frames[0].line, 0u);
  EXPECT_EQ(where.frames[0].file, "");
  EXPECT_TRUE(where.is_known);
}

TEST(symbols, of_a_stripped_file_are_what_it_exports) {
  const loaded_code code(fixture("stripped.so"));
  symbolizer symbols({code.module}, no_process());
  EXPECT_EQ(symbols.resolve(code.address_in_exported).frames[0].function, "address_in_exported");
  const location& where = symbols.resolve(code.address);
  EXPECT_FALSE(where.is_known);
  ASSERT_EQ(where.frames.size(), 1u);
  EXPECT_EQ(where.frames[0].function, fmt::format("stripped.so+{:#x}", code.address - code.module.base));
}

TEST(symbols, of_a_file_that_is_gone_or_another_are_offsets) {
  const loaded_code code(fixture("known_code.so"));
  const segment::scratch_folder folder;
  const auto name_with = [&](const std::string& content, const char* name) {
    if (!content.empty()) std::ofstream(folder / name) << content;
    segment::module_figures module = code.module;
    module.path = folder / name;
    return symbolizer({module}, no_process()).resolve(code.address).frames.at(0).function;
  };
  const std::string offset = fmt::format("+{:#x}", code.address - code.module.base);
  EXPECT_EQ(name_with("", "gone.so"), "gone.so" + offset);
  EXPECT_EQ(name_with("no ELF", "text.so"), "text.so" + offset);
  EXPECT_EQ(name_with("\177ELF\2\1\1", "cut.so"), "cut.so" + offset);
  std::ifstream whole(code.module.path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(whole), {}};
  EXPECT_EQ(name_with(bytes.substr(0, 100), "header.so"), "header.so" + offset);
  EXPECT_EQ(name_with(bytes, "whole.so"), "known::widget::inlined");

  segment::module_figures elsewhere = code.module;
  elsewhere.end += 1 << 30;
  EXPECT_EQ(symbolizer({elsewhere}, no_process()).resolve(code.address).frames.at(0).function, "known_code.so" + offset)
      << "more code than the file has";
}

TEST(symbols, damaged_files_break_nothing) {
  const loaded_code code(fixture("known_code.so"));
  const segment::scratch_folder folder;
  std::ifstream whole(code.module.path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(whole), {}};
  std::uint64_t random = 1;
  segment::module_figures module = code.module;
  for (int round = 0; round < 200; ++round) {
    std::string damaged = bytes;
    for (int i = 0; i < 20; ++i) {
      random = random * 6364136223846793005u + 1442695040888963407u;
      damaged[64 + (random >> 33) % (damaged.size() - 64)] = static_cast<char>(random >> 24);
    }
    module.path = folder / fmt::format("{}.so", round);
    std::ofstream(module.path, std::ios::binary) << damaged;
    symbolizer symbols({module}, no_process());
    EXPECT_FALSE(symbols.resolve(code.address).frames.at(0).function.empty());
    std::filesystem::remove(module.path);
  }
}

TEST(symbols, of_no_module_are_addresses) {
  symbolizer symbols({}, no_process());
  const location& where = symbols.resolve(0x7f0012345678);
  EXPECT_EQ(where.module, "");
  EXPECT_FALSE(where.is_known);
  ASSERT_EQ(where.frames.size(), 1u);
  EXPECT_EQ(where.frames[0].function, "0x7f0012345678");
  EXPECT_EQ(symbols.resolve(0).frames.size(), 1u);
}

TEST(symbols, become_known_when_their_module_does) {
  const loaded_code code(fixture("known_code.so"));
  symbolizer symbols({}, no_process());
  const location& where = symbols.resolve(code.address);
  EXPECT_FALSE(where.is_known);
  symbols.add_modules({code.module});
  symbols.add_modules({code.module});
  EXPECT_EQ(symbols.modules().size(), 1u);
  symbols.resolve(code.address);
  expect_all_known(code, where);
}

TEST(symbols, a_later_module_wins_over_one_that_was_unloaded) {
  const loaded_code code(fixture("known_code.so"));
  segment::module_figures earlier = code.module;
  earlier.path = "/lib/earlier.so";
  symbolizer symbols({earlier, code.module}, no_process());
  EXPECT_EQ(symbols.resolve(code.address).module, code.module.path);
}

TEST(symbols, of_code_made_at_run_time_come_from_its_list) {
  const std::string path = fmt::format("/tmp/perf-{}.map", no_process());
  std::ofstream list(path);
  list << "1000 100 first function\n0x2000 0x10 second\nnonsense\nffffffffffffffff 10 wraps\n" << std::flush;
  symbolizer symbols({}, no_process());
  const location& first = symbols.resolve(0x1001);
  EXPECT_EQ(first.frames[0].function, "first function");
  EXPECT_EQ(first.module, path);
  EXPECT_TRUE(first.is_known);
  EXPECT_EQ(symbols.resolve(0x1100).frames[0].function, "first function") << "the call before it is the last in it";
  EXPECT_EQ(symbols.resolve(0x1101).frames[0].function, "0x1101");
  EXPECT_EQ(symbols.resolve(0x2010).frames[0].function, "second");

  const location& late = symbols.resolve(0x3001);
  EXPECT_FALSE(late.is_known);
  list << "3000 10 la" << std::flush;
  symbols.resolve(0x3001);
  EXPECT_FALSE(late.is_known) << "the line is not complete";
  list << "te\n1080 8 in its place\n1ff8 10 over its begin\n" << std::flush;
  symbols.resolve(0x3001);
  EXPECT_EQ(late.frames[0].function, "late");
  EXPECT_EQ(symbols.resolve(0x1081).frames[0].function, "in its place");
  EXPECT_EQ(symbols.resolve(0x2003).frames[0].function, "over its begin");
  std::filesystem::remove(path);
}

TEST(symbols, of_javascript_are_functions_and_files) {
  const std::string path = fmt::format("/tmp/perf-{}.map", no_process());
  std::ofstream(path)
      << "1000 10 JS:*handle /app/a server.js:11:16\n2000 10 JS:~get size node:internal/x:3:4\n"
         "3000 10 JS:^ file:///app/b.mjs:7:1\n4000 10 JS:*odd\n5000 10 JS:*no line /a.js:x:1\n"
         "6000 10 LazyCompile:*old /app/a.js:5:6\n7000 10 JS:~inWorker [worker eval]:1:2\n"
         "a000 10 Function:^keep /app/my cart.js:12\nb000 10 LazyCompile:~ node:internal/y:7\nc000 10 Eval:~ [eval]:1\n"
         "d000 10 JS:~get node:internal/console:212:14\n"
         "8000 10 JS:*f file:///d%C3%A9/100%25%.mjs:2:1\n9000 10 JS:~ [my file]:1:1\n";
  symbolizer symbols({}, no_process());
  const auto of = [&](std::uint64_t address) { return symbols.resolve(address + 1); };
  EXPECT_EQ(of(0x1000).frames, (std::vector<source_frame>{{"handle", "/app/a server.js", 11}}));
  EXPECT_EQ(of(0x1000).module, "/app/a server.js");
  EXPECT_TRUE(of(0x1000).is_script);
  EXPECT_EQ(of(0x2000).frames, (std::vector<source_frame>{{"get size", "node:internal/x", 3}}));
  EXPECT_EQ(of(0x3000).frames, (std::vector<source_frame>{{"(anonymous)", "/app/b.mjs", 7}}));
  for (const std::uint64_t other : {0x4000, 0x5000}) EXPECT_FALSE(of(other).is_script) << other;
  EXPECT_EQ(of(0x6000).frames, (std::vector<source_frame>{{"old", "/app/a.js", 5}})) << "as node up to 18 says";
  EXPECT_EQ(of(0x7000).frames, (std::vector<source_frame>{{"inWorker", "[worker eval]", 1}}));
  EXPECT_EQ(of(0x8000).frames, (std::vector<source_frame>{{"f", "/d\xC3\xA9/100%%.mjs", 2}}));
  EXPECT_EQ(of(0x9000).frames, (std::vector<source_frame>{{"(anonymous)", "[my file]", 1}}));
  EXPECT_EQ(of(0xd000).frames, (std::vector<source_frame>{{"get", "node:internal/console", 212}}));
  // As Debian's node 18 says: without a column.
  EXPECT_EQ(of(0xa000).frames, (std::vector<source_frame>{{"keep", "/app/my cart.js", 12}}));
  EXPECT_EQ(of(0xb000).frames, (std::vector<source_frame>{{"(anonymous)", "node:internal/y", 7}}));
  EXPECT_EQ(of(0xc000).frames, (std::vector<source_frame>{{"(anonymous)", "[eval]", 1}}));
  std::filesystem::remove(path);
}

TEST(symbols, describe_modules_as_profiles_need_it) {
  const loaded_code code(fixture("known_code.so"));
  symbolizer symbols({code.module}, no_process());
  const mapped_module about = symbols.describe(code.module);
  EXPECT_EQ(about.build_id, "0123456789abcdef");
  EXPECT_EQ(about.file_offset, 0u);
  ASSERT_NE(symbols.module_of(code.address), nullptr);
  EXPECT_EQ(symbols.module_of(code.address)->path, code.module.path);
  EXPECT_EQ(symbols.module_of(1), nullptr);
}

TEST(demangling, reads_cpp_and_both_schemes_of_rust) {
  EXPECT_EQ(demangled("_ZNSt6vectorIiSaIiEE9push_backERKi"), "std::vector<int, std::allocator<int> >::push_back");
  EXPECT_EQ(demangled("_Z3addIiET_S0_S0_"), "add<int>");
  EXPECT_EQ(demangled("_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE"), "core::fmt::Write::write_fmt");
  EXPECT_EQ(demangled("_RNvNtCs1234_7mycrate3foo3bar"), "mycrate::foo::bar");
  EXPECT_EQ(demangled("_Z3foov.constprop.0.isra.1"), "foo");
  EXPECT_EQ(demangled("compute.part.0"), "compute");
  EXPECT_EQ(demangled("malloc@@GLIBC_2.2.5"), "malloc");
}

TEST(demangling, leaves_what_it_does_not_know) {
  for (const char* name : {"", "main", "_Z", "_ZN", "_R", "_ZNSt6vectorIiSaIiEE9push", "_start", "Java_com_example"})
    EXPECT_EQ(demangled(name), name);
  EXPECT_EQ(demangled("_Z" + std::string(100'000, 'P')).size(), 100'002u);
}

}  // namespace
}  // namespace heapwright::tool
