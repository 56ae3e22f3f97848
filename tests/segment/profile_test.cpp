// Profiles, read again as other tools would: the collapsed text line by line, profile.proto message
// by message.
#include "profile.hpp"

#include <algorithm>
#include <map>

#include <gtest/gtest.h>
#include <zlib.h>
#include <protozero/pbf_reader.hpp>

#include "loaded_code.hpp"

namespace heapwright::tool {
namespace {

std::string unzipped(const std::string& bytes) {
  z_stream stream{};
  EXPECT_EQ(inflateInit2(&stream, MAX_WBITS + 16), Z_OK);
  std::string result(1 << 20, '\0');
  std::string input = bytes;
  stream.next_in = reinterpret_cast<Bytef*>(input.data());
  stream.avail_in = static_cast<uInt>(input.size());
  stream.next_out = reinterpret_cast<Bytef*>(result.data());
  stream.avail_out = static_cast<uInt>(result.size());
  EXPECT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END);
  result.resize(stream.total_out);
  inflateEnd(&stream);
  return result;
}

/// All fields of a message by number: numbers as they are, parts as bytes.
struct message {
  std::multimap<std::uint32_t, std::uint64_t> numbers;
  std::multimap<std::uint32_t, std::string> parts;

  explicit message(const std::string& bytes) {
    for (protozero::pbf_reader reader(bytes); reader.next();) {
      const std::uint32_t field = reader.tag();
      if (reader.wire_type() == protozero::pbf_wire_type::varint)
        numbers.emplace(field, reader.get_uint64());
      else if (reader.wire_type() == protozero::pbf_wire_type::fixed64)
        numbers.emplace(field, reader.get_fixed64());
      else
        parts.emplace(field, reader.get_string());
    }
  }

  [[nodiscard]] std::uint64_t number(std::uint32_t field) const {
    const auto found = numbers.find(field);
    return found == numbers.end() ? 0 : found->second;
  }
  [[nodiscard]] std::vector<message> all(std::uint32_t field) const {
    std::vector<message> result;
    for (auto [at, end] = parts.equal_range(field); at != end; ++at) result.emplace_back(at->second);
    return result;
  }
};

struct decoded {
  message profile;
  std::vector<std::string> texts;

  explicit decoded(const std::string& file) : profile(unzipped(file)) {
    for (auto [at, end] = profile.parts.equal_range(6); at != end; ++at) texts.push_back(at->second);
  }
  [[nodiscard]] std::string text(const message& m, std::uint32_t field) const { return texts.at(m.number(field)); }
  [[nodiscard]] message with_id(std::uint32_t field, std::uint64_t id) const {
    for (const message& m : profile.all(field))
      if (m.number(1) == id) return m;
    ADD_FAILURE() << "nothing of kind " << field << " has number " << id;
    return message("");
  }
};

std::vector<std::int64_t> packed(const message& m, std::uint32_t field) {
  std::vector<std::int64_t> values;
  const std::string& bytes = m.parts.find(field)->second;
  for (const char *at = bytes.data(), *end = at + bytes.size(); at != end;)
    values.push_back(static_cast<std::int64_t>(protozero::decode_varint(&at, end)));
  return values;
}

segment::stack_figures stack_of(segment::reference id, std::vector<std::uint64_t> addresses, double blocks,
                                std::uint64_t bytes, double frees = 0, std::uint64_t freed = 0) {
  segment::stack_figures s;
  s.id = id;
  s.addresses = std::move(addresses);
  s.allocations = blocks;
  s.allocated_bytes = bytes;
  s.frees = frees;
  s.freed_bytes = freed;
  return s;
}

class profiles : public testing::Test {
 protected:
  loaded_code code{fixture("known_code.so")};
  symbolizer symbols{{{0x1000, 0x2000, 0x1000, "/lib/gone.so"}, code.module}, 4'000'000'001u};
};

TEST_F(profiles, collapsed_have_a_line_for_each_stack) {
  segment::stack_figures cut = stack_of(3, {0x55}, 1, 9);
  cut.is_cut = true;
  EXPECT_EQ(collapsed_stacks({stack_of(1, {code.address, 0x1010}, 3.4, 300, 1, 100), cut, stack_of(4, {}, 1, 1),
                              stack_of(5, {0x66}, 2, 2, 2, 2)},
                             symbols, heap_measure::inuse_space),
            "gone.so+0x10;known::widget::outer;known::widget::inlined 200\n"
            "(cut);0x55 9\n"
            "(unknown) 1\n");
  EXPECT_EQ(collapsed_stacks({stack_of(1, {0x55}, 3.4, 300, 1, 100)}, symbols, heap_measure::alloc_objects),
            "0x55 3\n");
}

TEST_F(profiles, collapsed_names_cannot_break_lines) {
  symbolizer odd({{0x1000, 0x2000, 0x1000, "/lib/a;b\nc.so"}}, 4'000'000'001u);
  EXPECT_EQ(collapsed_stacks({stack_of(1, {0x1010}, 1, 5)}, odd, heap_measure::alloc_space), "a:b c.so+0x10 5\n");
}

TEST_F(profiles, names_that_are_no_utf8_are_made_so) {
  symbolizer odd({{0x1000, 0x2000, 0x1000, "/lib/\xff.so"}}, 4'000'000'001u);
  EXPECT_EQ(collapsed_stacks({stack_of(1, {0x1010}, 1, 5)}, odd, heap_measure::alloc_space),
            "\xEF\xBF\xBD.so+0x10 5\n");
  const decoded d(pprof_profile({stack_of(1, {0x1010}, 1, 5)}, odd, {}));
  EXPECT_NE(std::find(d.texts.begin(), d.texts.end(), "\xEF\xBF\xBD.so+0x10"), d.texts.end());
  EXPECT_NE(std::find(d.texts.begin(), d.texts.end(), "/lib/\xEF\xBF\xBD.so"), d.texts.end());
}

TEST_F(profiles, allocations_may_be_told_since_an_earlier_moment) {
  const allocated_before before{{1, {2, 250}}, {2, {9, 900}}};
  const decoded d(pprof_profile({stack_of(1, {0x1010}, 3, 300, 1, 100), stack_of(2, {0x1020}, 8, 800, 8, 800),
                                 stack_of(3, {0x1030}, 4, 40, 4, 40)},
                                symbols, {.before = &before}));
  std::vector<std::vector<std::int64_t>> values;
  for (const message& m : d.profile.all(2)) values.push_back(packed(m, 2));
  EXPECT_EQ(values, (std::vector<std::vector<std::int64_t>>{{1, 50, 2, 200}, {4, 40, 0, 0}}));
}

TEST_F(profiles, otlp_has_one_sample_for_a_stack) {
  const message request(
      unzipped(otlp_profiles({stack_of(1, {code.address, 0x1010}, 3, 300, 1, 100),
                              stack_of(2, {code.address, 0x1010}, 4, 400), stack_of(3, {0x1010}, 1, 16, 1, 16)},
                             symbols, {.at_unix_ns = 17, .duration_ns = 5}, {{{"a", "b"}}, 9})));
  const message scope = request.all(1).at(0).all(2).at(0);
  std::vector<std::vector<std::int64_t>> values;
  for (const message& profile : scope.all(2)) {
    values.emplace_back();
    for (const message& sample : profile.all(2)) values.back().push_back(packed(sample, 4).at(0));
    EXPECT_EQ(profile.number(3), 12u);
    EXPECT_EQ(profile.number(4), 5u);
  }
  EXPECT_EQ(values, (std::vector<std::vector<std::int64_t>>{{7, 1}, {700, 16}, {6}, {600}}));
  const message dictionary = request.all(2).at(0);
  EXPECT_EQ(dictionary.parts.count(7), 3u);  // stacks: none, and two
  EXPECT_EQ(dictionary.parts.count(2), 3u);  // locations: the empty one, and two
}

TEST_F(profiles, pprof_has_the_values_of_go_heap_profiles) {
  const decoded d(pprof_profile({stack_of(1, {code.address, 0x1010}, 3, 300, 1, 100)}, symbols,
                                {.interval = 4096, .at_unix_ns = 17, .duration_ns = 18}));
  ASSERT_EQ(d.texts.at(0), "");
  std::vector<std::string> types;
  for (const message& m : d.profile.all(1)) types.push_back(d.text(m, 1) + "/" + d.text(m, 2));
  EXPECT_EQ(types, (std::vector<std::string>{"alloc_objects/count", "alloc_space/bytes", "inuse_objects/count",
                                             "inuse_space/bytes"}));
  EXPECT_EQ(d.text(d.profile, 14), "inuse_space");
  EXPECT_EQ(d.profile.number(9), 17u);
  EXPECT_EQ(d.profile.number(10), 18u);
  EXPECT_EQ(d.profile.number(12), 4096u);
  EXPECT_EQ(d.text(d.profile.all(11).at(0), 1), "space");
  ASSERT_EQ(d.profile.all(2).size(), 1u);
  EXPECT_EQ(packed(d.profile.all(2)[0], 2), (std::vector<std::int64_t>{3, 300, 2, 200}));
  const decoded allocs(pprof_profile({}, symbols, {.shown_first = heap_measure::alloc_space}));
  EXPECT_EQ(allocs.text(allocs.profile, 14), "alloc_space");
}

TEST_F(profiles, pprof_has_inlined_functions_as_lines_of_a_location) {
  const decoded d(pprof_profile({stack_of(1, {code.address, 0x1010}, 1, 1), stack_of(2, {code.address}, 1, 1)}, symbols,
                                {.program = code.module.path}));
  const auto locations = packed(d.profile.all(2).at(0), 1);
  ASSERT_EQ(locations.size(), 2u);
  EXPECT_EQ(d.profile.all(4).size(), 2u) << "each address once";
  const message innermost = d.with_id(4, static_cast<std::uint64_t>(locations[0]));
  EXPECT_EQ(innermost.number(3), code.address - 1);
  const auto lines = innermost.all(4);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].number(2), static_cast<std::uint64_t>(code.line_in_inlined));
  EXPECT_EQ(lines[1].number(2), static_cast<std::uint64_t>(code.line_in_outer));
  const message inlined = d.with_id(5, lines[0].number(1)), outer = d.with_id(5, lines[1].number(1));
  EXPECT_EQ(d.text(inlined, 2), "known::widget::inlined");
  EXPECT_EQ(d.text(outer, 2), "known::widget::outer");
  EXPECT_TRUE(d.text(outer, 4).ends_with("known_code.cpp"));

  const message module = d.with_id(3, innermost.number(2));
  EXPECT_EQ(module.number(1), 1u) << "the program is the first";
  EXPECT_EQ(module.number(2), code.module.begin);
  EXPECT_EQ(module.number(3), code.module.end);
  EXPECT_EQ(d.text(module, 5), code.module.path);
  EXPECT_EQ(d.text(module, 6), "0123456789abcdef");
  EXPECT_EQ(module.number(7), 1u);
  const message gone = d.with_id(3, d.with_id(4, static_cast<std::uint64_t>(locations[1])).number(2));
  EXPECT_EQ(d.text(gone, 5), "/lib/gone.so");
  EXPECT_EQ(gone.number(7), 0u) << "names are left for pprof to find";
}

TEST_F(profiles, pprof_has_the_name_of_threads_as_a_label) {
  std::vector stacks{stack_of(1, {0x1010}, 1, 5), stack_of(2, {0x1010}, 1, 6), stack_of(3, {0x1010}, 1, 7),
                     stack_of(4, {0x1010}, 1, 8), stack_of(5, {0x1010}, 1, 9)};
  for (std::uint32_t i = 0; i < 3; ++i) stacks[i].name_of_threads = i + 1;
  stacks[3].name_of_threads = 4;  // there are not so many
  const decoded d(pprof_profile(stacks, symbols, {.thread_names = {"reader", "\xff", ""}}));
  std::vector<std::string> labels;
  for (const message& sample : d.profile.all(2)) {
    std::string text = std::to_string(packed(sample, 2).at(1));
    for (const message& label : sample.all(3)) text += " " + d.text(label, 1) + "=" + d.text(label, 2);
    labels.push_back(text);
  }
  EXPECT_EQ(labels, (std::vector<std::string>{"5 thread=reader", "6 thread=\xEF\xBF\xBD", "7 thread=", "8", "9"}));
}

TEST_F(profiles, differences_may_be_negative_and_others_not) {
  const std::vector before{stack_of(1, {0x55}, 10, 1000, 2, 200), stack_of(2, {0x66}, 5, 50)};
  const std::vector after{stack_of(1, {0x55}, 11, 1100, 8, 800), stack_of(2, {0x66}, 5, 50), stack_of(3, {0x77}, 1, 7)};
  const auto changed = stacks_between(after, before);
  ASSERT_EQ(changed.size(), 2u);
  EXPECT_EQ(changed[0].id, 1u);
  EXPECT_DOUBLE_EQ(changed[0].allocations, 1);
  EXPECT_DOUBLE_EQ(changed[0].frees, 6);
  EXPECT_EQ(value_of(changed[0], heap_measure::inuse_space), -500);
  EXPECT_EQ(changed[1].id, 3u);
  const decoded d(pprof_profile(changed, symbols, {.is_difference = true}));
  EXPECT_EQ(packed(d.profile.all(2).at(0), 2), (std::vector<std::int64_t>{1, 100, -5, -500}));
  const decoded plain(pprof_profile(changed, symbols, {}));
  EXPECT_EQ(packed(plain.profile.all(2).at(0), 2), (std::vector<std::int64_t>{1, 100, 0, 0}));
  EXPECT_TRUE(stacks_between(before, after).empty()) << "counters that shrink are of another segment";
}

}  // namespace
}  // namespace heapwright::tool
