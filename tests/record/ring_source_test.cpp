// What the recorder reads of rings, as threads may leave them: laps, full rings, empty places.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ring_source.hpp"

namespace heapwright::tool {
namespace {

using trace::ring_file;
using trace::ring_record;

/// A file of two rings of eight records, and what a thread writes into the second one.
class RingSource : public testing::Test {
 protected:
  static constexpr std::uint64_t records = 8, heads = (sizeof(ring_file) + 2 * sizeof(trace::ring_head) + 63) / 64 * 64,
                                 bytes = heads + 2 * records * sizeof(ring_record);

  RingSource() {
    const int fd = ::mkstemp(path_.data());
    EXPECT_EQ(::ftruncate(fd, bytes), 0);
    file_ = static_cast<ring_file*>(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
    ::close(fd);
    file_->magic = ring_file::right_magic;
    file_->version = ring_file::right_version;
    file_->rings = 2;
    file_->records = records;
    file_->records_at = heads;
    source_ = ring_source::open(path_);
  }
  ~RingSource() override {
    ::munmap(file_, bytes);
    std::filesystem::remove(path_);
  }

  /// The record of this place says it.
  void write(std::uint64_t place) {
    ring_record& r = file_->begin_of(1)[place % records];
    r.what = place;
    r.set_stamp(1000 + 2 * place, ring_record::lap_mark(place, records));
  }
  [[nodiscard]] bool has_room(std::uint64_t place) const { return place < file_->head(1).limit(records); }

  std::vector<std::uint64_t> read(bool is_over = false) {
    std::vector<std::uint64_t> places;
    source_->read(1, is_over, [&](std::uint64_t ticks, const ring_record& r) {
      EXPECT_EQ(ticks, 1000 + 2 * r.what);
      places.push_back(r.what);
    });
    return places;
  }

  std::string path_ = (std::filesystem::temp_directory_path() / "heapwright-rings-XXXXXX").string();
  ring_file* file_;
  std::unique_ptr<ring_source> source_;
};

using places = std::vector<std::uint64_t>;

TEST_F(RingSource, ReadsEachRecordOnceOverManyLaps) {
  EXPECT_EQ(read(), places{});
  places written, found;
  for (std::uint64_t place = 0; place < 100; ++place) {
    ASSERT_TRUE(has_room(place));
    write(place);
    written.push_back(place);
    if (place % 7 != 0) continue;
    const places some = read();
    found.insert(found.end(), some.begin(), some.end());
  }
  const places rest = read();
  found.insert(found.end(), rest.begin(), rest.end());
  EXPECT_EQ(found, written);
  EXPECT_EQ(read(), places{});
}

TEST_F(RingSource, AFullRingHasRoomAgainWhenItWasRead) {
  for (std::uint64_t place = 0; place < records; ++place) write(place);
  EXPECT_FALSE(has_room(records));
  EXPECT_EQ(read().size(), records);
  EXPECT_TRUE(has_room(2 * records - 1));
  EXPECT_FALSE(has_room(2 * records));
}

TEST_F(RingSource, WaitsForAPlaceThatIsWrittenLate) {
  write(0);
  write(2);
  EXPECT_EQ(read(), places{0});
  EXPECT_EQ(read(), places{});
  write(1);
  EXPECT_EQ(read(), (places{1, 2}));
}

TEST_F(RingSource, GoesPastAPlaceThatStaysEmpty) {
  for (std::uint64_t place = 0; place < records; ++place) {
    if (place != 1) write(place);
  }
  EXPECT_EQ(read(), places{0});
  places behind;
  for (int looks = 0; looks < 1000 && behind.empty(); ++looks) behind = read();
  EXPECT_EQ(behind, (places{2, 3, 4, 5, 6, 7}));
  EXPECT_TRUE(has_room(2 * records - 1));
}

TEST_F(RingSource, GoesPastSeveralEmptyPlacesOfAFullRing) {
  write(0);
  EXPECT_EQ(read(), places{0});
  for (std::uint64_t place = 4; place < 1 + records; ++place) write(place);  // and not 1 to 3
  EXPECT_FALSE(has_room(1 + records));
  places behind;
  for (int looks = 0; looks < 1000 && behind.empty(); ++looks) behind = read();
  EXPECT_EQ(behind, (places{4, 5, 6, 7, 8}));
  EXPECT_TRUE(has_room(1 + records));
}

TEST_F(RingSource, GoesPastAnEmptyPlaceAtOnceWhereTheProcessHasEnded) {
  write(1);
  EXPECT_EQ(read(true), places{1});
}

TEST_F(RingSource, TheNextReaderGoesOnWhereTheLastOneHasRead) {
  for (std::uint64_t place = 0; place < 5; ++place) write(place);
  EXPECT_EQ(read().size(), 5U);
  for (std::uint64_t place = 5; place < 12; ++place) write(place);
  source_ = ring_source::open(path_);
  EXPECT_EQ(read(), (places{5, 6, 7, 8, 9, 10, 11}));
}

}  // namespace
}  // namespace heapwright::tool
