// Segments that are cut off, torn, or made to hurt: a reader says what is wrong or leaves out what
// does not fit. That it neither crashes nor reads what is not its own is seen best when this runs
// under AddressSanitizer.
#include <fstream>
#include <random>
#include <string>
#include <tuple>

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "segment_builder.hpp"
#include "segment_reader.hpp"

namespace heapwright::segment {
namespace {

void fill(segment_builder& built) {
  for (std::uint32_t i = 1; i < 4; ++i) built.add_thread(i, i).classes[i].allocations = i;
  for (std::uint64_t i = 1; i <= 20; ++i) {
    const std::uint32_t name = i % 2 == 0 ? built.add_thread_name("thread " + std::to_string(i)) : 0;
    const reference r = built.add_stack(i, std::vector<std::uint64_t>(i * 3, 0x1000 * i), 0, name);
    (void)built.add_code("function", "/app/file.py", std::string(i, 't'), line_table::python_3_11);
    built.add_sample(0x100 * i, r);
  }
  for (std::uint64_t i = 1; i < 4; ++i) {
    module& m = built.add_module();
    m.begin = i << 20;
    m.end = m.begin + 4096;
    set_text(m.path, "/lib/module.so");
  }
  built.header().mark_count = 1;
  built.header().marks[0].at_ns = 5;
}

struct all_figures {
  snapshot now;
  std::vector<stack_figures> stacks;
  std::vector<sample_figures> samples;
};

all_figures read_all(const segment_reader& reader) { return {reader.read(), reader.stacks(), reader.live_samples()}; }

class hostile_segment : public testing::Test {
 protected:
  hostile_segment() { fill(built); }

  scratch_folder folder;
  segment_builder built{folder / "one.segment"};
};

TEST_F(hostile_segment, cut_off_anywhere_gives_what_is_left) {
  const std::filesystem::path cut = folder / "cut.segment";
  const std::string whole = built.bytes();
  std::size_t stacks = 0, threads = 0;
  for (std::size_t length = 0; length <= whole.size(); length += length < 8192 ? 61 : 509) {
    std::ofstream(cut, std::ios::binary | std::ios::trunc).write(whole.data(), static_cast<std::streamsize>(length));
    if (length < sizeof(segment_header)) {
      EXPECT_THROW(segment_reader{cut}, bad_segment) << length;
      continue;
    }
    const all_figures all = read_all(segment_reader(cut));
    EXPECT_GE(all.stacks.size(), stacks) << length;
    EXPECT_GE(all.now.threads.size(), threads) << length;
    stacks = all.stacks.size();
    threads = all.now.threads.size();
  }
  EXPECT_EQ(stacks, 20u);
  EXPECT_EQ(threads, 4u);
}

TEST_F(hostile_segment, cut_off_while_it_is_read_ends_neither_reading_nor_control) {
  segment_reader reader(built.path(), true);
  ASSERT_EQ(read_all(reader).stacks.size(), 20u);
  std::filesystem::resize_file(built.path(), built.header().stacks_at + 2000);
  const auto left = reader.stacks();
  EXPECT_GT(left.size(), 0u);
  EXPECT_LT(left.size(), 20u);
  std::filesystem::resize_file(built.path(), 100);
  EXPECT_THROW(static_cast<void>(reader.read()), bad_segment);
  EXPECT_THROW(reader.set_interval(1), bad_segment);
  EXPECT_THROW(reader.add_mark("x"), bad_segment);
}

TEST_F(hostile_segment, random_bytes_neither_crash_nor_hang) {
  const std::filesystem::path path = folder / "random.segment";
  const std::string whole = built.bytes();
  std::mt19937_64 random(20260101);
  const std::size_t used[] = {0,
                              offsetof(segment_header, thread_names),
                              built.header().threads_at,
                              built.header().stack_index_at,
                              built.header().stacks_at,
                              built.header().samples_at,
                              built.header().codes_at};
  constexpr std::uint64_t nasty[] = {0, 1, 0x7f, 0xff, 0xffff'ffff, 0x8000'0000, ~0ull, ~0ull << 4, 1ull << 63, 0x1000};
  unsigned readable = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string bytes = whole;
    for (std::uint64_t change = random() % 8 + 1; change > 0; --change) {
      // Behind the magic and the version: what is changed there is refused at once.
      const std::size_t at = std::max<std::size_t>(24, used[random() % std::size(used)] + random() % 9000);
      if (random() % 2 == 0) {
        bytes[at % bytes.size()] = static_cast<char>(random());
      } else {
        const std::uint64_t number = nasty[random() % std::size(nasty)] + random() % 3;
        std::memcpy(bytes.data() + (at % (bytes.size() - 8)) / 4 * 4, &number, random() % 2 == 0 ? 4 : 8);
      }
    }
    // The numbers that say where all else is are few: each round has one of them wrong.
    const std::size_t first = offsetof(segment_header, bytes), last = offsetof(segment_header, counting);
    const std::uint64_t number = random() % 2 == 0 ? nasty[random() % std::size(nasty)] : random() % (2 * whole.size());
    std::memcpy(bytes.data() + first + random() % (last - first) / 8 * 8, &number, 8);
    std::ofstream(path, std::ios::binary | std::ios::trunc)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    try {
      const all_figures all = read_all(segment_reader(path));
      ++readable;
      ASSERT_LE(all.now.threads.size(), whole.size() / thread_slot_bytes + 1);
      for (const stack_figures& s : all.stacks) {
        ASSERT_LE(s.addresses.size(), 512u);
        ASSERT_LE(all.now.name_of_threads(s).size(), sizeof(thread_name));
      }
    } catch (const bad_segment&) {
    }
  }
  EXPECT_GT(readable, 1000u);
}

TEST_F(hostile_segment, figures_beyond_63_bits_are_added_up) {
  thread_slot& thread = built.add_thread(4, 4);
  constexpr std::uint64_t much = std::uint64_t{3} << 61;
  thread.classes[1].allocated_bytes = thread.classes[2].allocated_bytes = much;
  const snapshot now = segment_reader(built.path()).read();
  EXPECT_EQ(now.total().allocated_bytes, 2 * much);
  EXPECT_EQ(now.process.class_peak[1], much);
}

TEST_F(hostile_segment, names_of_threads_beyond_those_that_there_are_are_not_known) {
  constexpr std::size_t most = std::tuple_size_v<decltype(segment_header::thread_names)>;
  segment_header& h = built.header();
  h.thread_names[most - 1] = {'0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'};
  std::uint64_t hash = 1'000;
  const auto add = [&](std::uint32_t name) { return built.add_stack(hash, {hash++}, 0, name); };
  const reference last = add(most);
  for (const std::uint32_t beyond : {std::uint32_t{most + 1}, 0x8000'0000u, 0xffff'ffffu}) add(beyond);
  for (const std::uint64_t used : {most, most + 1, std::uint64_t{1} << 32, ~std::uint64_t{0}}) {
    h.thread_names_used = used;
    const all_figures all = read_all(segment_reader(built.path()));
    EXPECT_EQ(all.now.thread_names.size(), most) << used;
    for (const stack_figures& s : all.stacks) {
      if (s.id < last) continue;
      EXPECT_EQ(all.now.name_of_threads(s), s.id == last ? "0123456789abcdef" : "(other threads)") << used;
    }
  }
  h.thread_names_used = 0;
  const all_figures all = read_all(segment_reader(built.path()));
  for (const stack_figures& s : all.stacks) EXPECT_EQ(all.now.name_of_threads(s), "(other threads)");
}

TEST_F(hostile_segment, chains_that_run_in_circles_end) {
  const reference a = built.add_stack(100, {1}), b = built.add_stack(200, {2});
  built.stack_at(a).next = b;
  built.stack_at(b).next = a;
  built.take_stack(1);  // makes the reader use chains
  built.add_stack(300, {3});
  for (std::uint64_t i = 0; i < segment_builder::buckets; ++i) built.bucket(i) = i % 2 == 0 ? a : b;
  EXPECT_EQ(segment_reader(built.path()).stacks().size(), 22u);
  built.bucket(0) = 0xffff'ffff;
  EXPECT_EQ(segment_reader(built.path()).stacks().size(), 22u);
}

TEST_F(hostile_segment, a_huge_hole_costs_nothing) {
  segment_header& h = built.header();
  h.thread_slots = h.stack_buckets = 0xffff'ffff;
  h.stacks_used = h.samples_used = std::uint64_t{1} << 60;
  ASSERT_EQ(truncate(built.path().c_str(), off_t{1} << 42), 0) << "this file system has no files of 4 TiB";
  const all_figures all = read_all(segment_reader(built.path()));
  EXPECT_GE(all.stacks.size(), 20u);
  EXPECT_GE(all.now.threads.size(), 4u);
}

TEST_F(hostile_segment, other_files_are_refused_with_a_sentence) {
  const auto refusal = [](const std::filesystem::path& path) -> std::string {
    try {
      const segment_reader reader(path);
    } catch (const bad_segment& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_NE(refusal(folder / "none").find("No such file"), std::string::npos);
  EXPECT_NE(refusal("/proc/self/exe").find("is neither a saved run nor a segment"), std::string::npos);
  EXPECT_NE(refusal("/dev/zero").find("is not a regular file"), std::string::npos);
  EXPECT_NE(refusal(folder.path()).find("is not a regular file"), std::string::npos);
  built.header().version = 99;
  EXPECT_NE(refusal(built.path()).find("version 99"), std::string::npos);
  built.header().version = segment_version;
  built.header().header_bytes = 12;
  EXPECT_NE(refusal(built.path()).find("damaged"), std::string::npos);
}

}  // namespace
}  // namespace heapwright::segment
