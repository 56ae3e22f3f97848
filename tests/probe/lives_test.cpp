// What can be read of programs that are killed, replaced, full of threads, or where there is no
// room: by the reader that the tools use.
//
//   lives_test PROBE LIVES
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "segment_reader.hpp"

namespace {

namespace fs = std::filesystem;
using namespace heapwright::segment;

std::string probe, lives;

constexpr std::size_t size = 7'000;

class Lives : public ::testing::Test {
 protected:
  Lives() {
    char name[] = "/dev/shm/heapwright-test.XXXXXX";
    directory = ::mkdtemp(name);
  }
  ~Lives() override {
    if (child > 0) {
      ::kill(child, SIGKILL);
      ::waitpid(child, nullptr, 0);
    }
    fs::remove_all(directory);
  }

  using environment = std::vector<std::pair<const char*, const char*>>;

  /// Starts `lives` under the probe. Its stdin and stdout are pipes to here.
  void start(std::vector<const char*> arguments, const environment& more = {}, rlim_t longest_file = RLIM_INFINITY) {
    int in[2], out[2];
    ASSERT_EQ(::pipe(in), 0);
    ASSERT_EQ(::pipe(out), 0);
    child = ::fork();
    if (child == 0) {
      ::dup2(in[0], 0);
      ::dup2(out[1], 1);
      for (int fd : {in[0], in[1], out[0], out[1]}) ::close(fd);
      const rlimit limit{longest_file, longest_file};
      ::setrlimit(RLIMIT_FSIZE, &limit);
      ::setenv("LD_PRELOAD", probe.c_str(), 1);
      ::setenv("HEAPWRIGHT_SEGMENT_DIR", directory.c_str(), 1);
      for (const auto& [name, value] : more) ::setenv(name, value, 1);
      arguments.insert(arguments.begin(), lives.c_str());
      arguments.push_back(nullptr);
      ::execv(lives.c_str(), const_cast<char**>(arguments.data()));
      std::_Exit(127);
    }
    ::close(in[0]);
    ::close(out[1]);
    to = in[1];
    from = out[0];
  }

  /// Its status, once it has ended.
  int wait() {
    ::close(to);
    ::close(from);
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    child = 0;
    return status;
  }

  int run(std::vector<const char*> arguments, const environment& more = {}, rlim_t longest_file = RLIM_INFINITY) {
    start(std::move(arguments), more, longest_file);
    return wait();
  }

  void tell(char command) {
    ASSERT_EQ(::write(to, &command, 1), 1);
    char answer = 0;
    ASSERT_EQ(::read(from, &answer, 1), 1);
    ASSERT_EQ(answer, command);
  }

  [[nodiscard]] std::vector<fs::path> segments() const { return segments_in(directory); }

  static class_figures of_our_size(const snapshot& s) { return s.by_class()[size_scale::index(size)]; }

  fs::path directory;
  pid_t child = 0;
  int to = -1, from = -1;
};

TEST_F(Lives, PeaksOfClassesAndThreads) {
  for (const char* const interval : {"1", "65536", "0"}) {
    SCOPED_TRACE(interval);
    fs::remove_all(directory);
    fs::create_directory(directory);
    ASSERT_EQ(run({"peaks"}, {{"HEAPWRIGHT_SAMPLE", interval}}), 0);
    const snapshot s = segment_reader(segments().front()).read();
    // What may be missed: a thread's allocations since it looked last. 30 intervals: e^-30 of all
    // runs.
    const double missed = std::string(interval) == "1" ? 0 : std::string(interval) == "0" ? 1 << 20 : 30 * 65536;
    for (const std::size_t of : {size, 3 * size}) {
      const auto peak = static_cast<double>(s.process.class_peak[size_scale::index(of)]);
      EXPECT_GE(peak, 1000.0 * static_cast<double>(of) - missed);
      EXPECT_LE(peak, 1000.0 * static_cast<double>(of) * 1.02 + 200'000) << "it has not been that much";
    }
    std::vector<double> of_threads;
    for (const thread_figures& t : s.threads)
      if (t.state != slot_state::everyone) of_threads.push_back(static_cast<double>(t.peak_net));
    ASSERT_EQ(of_threads.size(), 2U);
    const double grain = 16 * 1024;
    EXPECT_NEAR(of_threads[0], 3000.0 * size, 300'000) << "the first thread; its own few blocks beside";
    EXPECT_NEAR(of_threads[1], 500.0 * size, grain + 50'000);
  }
}

TEST_F(Lives, NoPeakAddsUpWhatThreadsHeldOneAfterTheOther) {
  for (const char* const interval : {"524288", "1", "65536", "0"}) {
    SCOPED_TRACE(interval);
    fs::remove_all(directory);
    fs::create_directory(directory);
    ASSERT_EQ(run({"holders", "40"}, {{"HEAPWRIGHT_SAMPLE", interval}}), 0);
    const snapshot s = segment_reader(segments().front()).read();
    constexpr std::uint64_t block = 3 << 20;
    EXPECT_LE(s.process.class_peak[size_scale::index(block + 1)], block + (block >> 2));
    EXPECT_LE(s.process.peak, block + (block >> 2) + 42 * s.process.peak_grain);
  }
}

TEST_F(Lives, TheKilledLeaveTheirLastFigures) {
  const int status = run({"killed"});
  ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  ASSERT_EQ(segments().size(), 1u);
  const segment_reader reader(segments().front());
  const snapshot s = reader.read();
  EXPECT_EQ(s.process.state, process_state::running) << "it had no time to say that it ends";
  EXPECT_FALSE(is_there(s.process));
  EXPECT_EQ(of_our_size(s).allocations, 1000u);
  EXPECT_EQ(of_our_size(s).frees, 0u);
  EXPECT_GE(s.process.peak, 1000 * size - s.process.peak_grain);
  EXPECT_EQ(s.process.program, fs::canonical(lives));
}

TEST_F(Lives, ExecLeavesTheFiguresOfTheProgramBefore) {
  EXPECT_EQ(run({"exec"}), 0);
  const auto files = segments();
  ASSERT_EQ(files.size(), 2u);
  const snapshot after = segment_reader(files[0]).read(), before = segment_reader(files[1]).read();
  EXPECT_EQ(before.process.state, process_state::replaced);
  EXPECT_EQ(of_our_size(before).allocations, 10u);
  EXPECT_EQ(after.process.state, process_state::exited);
  EXPECT_EQ(after.process.process_id, before.process.process_id);
  EXPECT_EQ(of_our_size(after).allocations, 0u);
}

TEST_F(Lives, AChildOfForkBeginsWithWhatIsLiveAndTellsItsOwnApart) {
  EXPECT_EQ(run({"fork"}, {{"HEAPWRIGHT_SAMPLE", "1"}}), 0);
  const auto files = segments();
  ASSERT_EQ(files.size(), 2u);
  const segment_reader parents(files[1]), childs(files[0]);
  EXPECT_EQ(of_our_size(parents.read()).allocations, 150u);
  EXPECT_EQ(parents.read().own_total().allocations, parents.read().total().allocations);
  const snapshot of_child = childs.read();
  EXPECT_EQ(of_child.process.forked_from, parents.process().process_id);
  EXPECT_EQ(of_our_size(of_child).allocations, 110u);
  EXPECT_EQ(of_our_size(of_child).frees, 30u);
  EXPECT_EQ(of_child.total().allocations - of_child.process.inherited_blocks, 10u);
  EXPECT_EQ(of_child.own_total().allocations, 10u);
  EXPECT_EQ(of_child.own_total().allocated_bytes - of_child.own_total().freed_bytes, 0u)
      << "it has freed more than it keeps";

  const auto blocks = [](const std::vector<stack_figures>& stacks) {
    std::vector<std::array<double, 2>> found;  // allocated, live
    for (const stack_figures& s : stacks)
      if (s.allocations >= 10 && s.allocated_bytes >= s.samples * size && s.allocated_bytes < s.samples * (size + 100))
        found.push_back({s.allocations, s.live_blocks()});
    std::ranges::sort(found);
    return found;
  };
  using list = std::vector<std::array<double, 2>>;
  EXPECT_EQ(blocks(parents.stacks()), (list{{50, 0}, {100, 100}}));
  EXPECT_EQ(blocks(childs.stacks()), (list{{10, 10}, {100, 70}}));
  EXPECT_EQ(blocks(childs.own_stacks()), (list{{10, 10}}));
}

TEST_F(Lives, ThousandsOfThreadsTakeFewSlotsAndNothingIsLost) {
  EXPECT_EQ(run({"threads", "3000"}), 0);
  const fs::path file = segments().at(0);
  const snapshot s = segment_reader(file).read();
  EXPECT_EQ(of_our_size(s).allocations, 30'000u);
  EXPECT_EQ(of_our_size(s).frees, 30'000u);
  EXPECT_EQ(s.process.threads_ever, 3001u);
  EXPECT_LE(s.threads.size(), 100u);
  struct stat is {};
  ASSERT_EQ(::stat(file.c_str(), &is), 0);
  EXPECT_LE(is.st_blocks * 512, 2 << 20) << "bytes in memory";
}

TEST_F(Lives, WhatThreadsDoInOnePlaceIsOneStackWhicheverThreadFrees) {
  constexpr std::uint64_t threads = 6, each = 50;
  EXPECT_EQ(run({"together", "6"}, {{"HEAPWRIGHT_SAMPLE", "1"}}), 0);
  const segment_reader reader(segments().at(0));
  std::map<reference, std::uint64_t> live_at;
  for (const sample_figures& s : reader.live_samples()) {
    if (s.bytes >= size && s.bytes < size + 100) ++live_at[s.at_stack];
  }
  int kept = 0, passing = 0;
  for (const stack_figures& s : reader.stacks()) {
    if (s.samples != threads * each || s.allocated_bytes < threads * each * size) continue;
    EXPECT_DOUBLE_EQ(s.allocations, threads * each);
    EXPECT_EQ(s.live_samples, live_at[s.id]);
    EXPECT_LE(s.first_ns, s.last_ns);
    kept += s.live_samples == threads * each / 2 && s.frees == threads * each / 2;
    passing += s.live_samples == 0 && s.frees == threads * each && s.freed_bytes == s.allocated_bytes;
  }
  EXPECT_EQ(kept, 1);
  EXPECT_EQ(passing, 1);
}

/// More than half of the room for stacks: from there on they belong to nobody.
TEST_F(Lives, AHundredThousandStacksHaveTheirSamples) {
  EXPECT_EQ(run({"stacks", "17"}, {{"HEAPWRIGHT_SAMPLE", "1"}}), 0);
  const segment_reader reader(segments().at(0));
  EXPECT_EQ(reader.process().lost_samples, 0u);
  std::size_t met_twice = 0;
  for (const stack_figures& s : reader.stacks())
    met_twice += s.samples == 2 && s.frees == 2 && s.allocated_bytes / 2 >= size && s.allocated_bytes / 2 < size + 100;
  EXPECT_EQ(met_twice, std::size_t{1} << 17);
}

TEST_F(Lives, IsSwitchedOnAndOffFromOutside) {
  start({"commands"}, {{"HEAPWRIGHT_PROBE", "off"}});
  tell('a');
  segment_reader reader(segments().at(0), true);
  EXPECT_EQ(reader.read().total().allocations, 0u) << "the call that has begun the process among them";
  EXPECT_FALSE(reader.process().is_counting);
  reader.set_counting(true);
  tell('a');
  tell('f');
  EXPECT_EQ(of_our_size(reader.read()).allocations, 200u);
  EXPECT_EQ(of_our_size(reader.read()).frees, 100u);
  EXPECT_TRUE(reader.process().is_counting);
  EXPECT_NE(reader.process().counting_since_ns, 0u);
  EXPECT_FALSE(reader.process().counts_from_start());
  reader.set_counting(false);
  tell('a');
  EXPECT_EQ(of_our_size(reader.read()).allocations, 200u);
  EXPECT_EQ(wait(), 0);
}

TEST_F(Lives, TheIntervalCanBeChangedWhileItRuns) {
  start({"commands"}, {{"HEAPWRIGHT_SAMPLE", "100000"}});
  tell('a');
  segment_reader reader(segments().at(0), true);
  reader.set_interval(1);
  for (int i = 0; i < 20; ++i) tell('a');
  const auto samples_before = reader.live_samples().size();
  tell('a');
  EXPECT_EQ(reader.live_samples().size(), samples_before + 100);
  EXPECT_EQ(wait(), 0);
}

TEST_F(Lives, AProgramThatClosesAllFilesGoesOnBeingSampled) {
  EXPECT_EQ(run({"without_files"}, {{"HEAPWRIGHT_SAMPLE", "1"}}), 0);
  const segment_reader reader(segments().at(0));
  EXPECT_GE(reader.live_samples().size(), 20'000u);
  EXPECT_EQ(reader.process().lost_samples, 0u);
}

TEST_F(Lives, WithoutASegmentTheProgramRunsAllTheSame) {
  EXPECT_EQ(run({"threads", "10"}, {}, 1 << 20), 0) << "where files may not be so long";
  EXPECT_EQ(run({"threads", "10"}, {{"HEAPWRIGHT_SEGMENT_DIR", "/proc/no such folder"}}), 0);
  fs::permissions(directory, fs::perms::owner_read | fs::perms::owner_exec);
  EXPECT_EQ(run({"threads", "10"}), 0);
  fs::permissions(directory, fs::perms::owner_all);
}

}  // namespace

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (argc != 3) {
    std::fputs("usage: lives_test PROBE LIVES\n", stderr);
    return 2;
  }
  probe = argv[1];
  lives = argv[2];
  return RUN_ALL_TESTS();
}
