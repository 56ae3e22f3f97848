#include "segment_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "segment_reader.hpp"

namespace heapwright::segment {
namespace {

constexpr std::uint64_t last_offset = std::numeric_limits<off_t>::max();

bool is_regular(int fd) noexcept {
  struct stat about {};
  return fstat(fd, &about) == 0 && S_ISREG(about.st_mode);
}

}  // namespace

segment_file::segment_file(std::filesystem::path path, bool may_control) : path_(std::move(path)) {
  // A FIFO would block, a device could have effects.
  fd_ = ::open(path_.c_str(), (may_control ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NONBLOCK);
  if (fd_ < 0) throw bad_segment("cannot open " + path_.string() + ": " + std::strerror(errno));
  try {
    if (!is_regular(fd_)) throw bad_segment(path_.string() + " is not a regular file");
    static_cast<void>(header());
    if (!may_control) return;
    void* const mapped = mmap(nullptr, sizeof(segment_header), PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
    if (mapped == MAP_FAILED) throw bad_segment("cannot map " + path_.string() + ": " + std::strerror(errno));
    control_ = static_cast<segment_header*>(mapped);
  } catch (...) {
    ::close(fd_);
    throw;
  }
}

segment_file::~segment_file() {
  if (control_ != nullptr) munmap(control_, sizeof(segment_header));
  ::close(fd_);
}

std::unique_ptr<segment_header> segment_file::header() const {
  auto copy = std::make_unique<segment_header>();
  const std::size_t there = read(0, copy.get(), sizeof(segment_header));
  if (there < sizeof copy->magic || copy->magic != segment_magic)
    throw bad_segment(path_.string() + " is neither a saved run nor a segment of heapwright");
  if (there >= offsetof(segment_header, header_bytes) && copy->version != segment_version)
    throw bad_segment(path_.string() + " is a segment of version " + std::to_string(copy->version) +
                      ", and this program reads version " + std::to_string(segment_version));
  if (there < sizeof(segment_header)) throw bad_segment(path_.string() + " is cut off within its header");
  if (copy->header_bytes != sizeof(segment_header) || copy->class_count != size_scale::count)
    throw bad_segment(path_.string() + " has a header that does not fit its version: it is damaged");
  return copy;
}

segment_header& segment_file::control() {
  if (control_ == nullptr) throw std::logic_error(path_.string() + " was opened for reading only");
  struct stat about {};
  if (fstat(fd_, &about) != 0 || static_cast<std::uint64_t>(about.st_size) < sizeof(segment_header))
    throw bad_segment(path_.string() + " has been cut off");
  return *control_;
}

std::size_t segment_file::read(std::uint64_t offset, void* into, std::size_t bytes) const noexcept {
  if (offset > last_offset || bytes > last_offset - offset) return 0;
  std::size_t done = 0;
  while (done < bytes) {
    const ssize_t n =
        ::pread(fd_, static_cast<std::byte*>(into) + done, bytes - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    done += static_cast<std::size_t>(n);
  }
  return done;
}

void segment_file::for_each_record(std::uint64_t offset, std::uint64_t bytes, std::size_t record_bytes,
                                   const std::function<void(std::uint64_t, const std::byte*)>& each) const {
  if (offset > last_offset) return;
  constexpr std::size_t batch_bytes = 64 * 1024;
  struct alignas(64) line {
    std::byte bytes[64];
  };
  std::vector<line> buffer(batch_bytes / sizeof(line));
  auto* const batch = reinterpret_cast<std::byte*>(buffer.data());
  const std::uint64_t count = std::min(bytes, last_offset - offset) / record_bytes;
  for (std::uint64_t i = 0; i < count;) {
    const std::uint64_t at = next_data(offset + i * record_bytes);
    if (at - offset >= count * record_bytes) return;
    i = (at - offset) / record_bytes;
    const std::uint64_t wanted = std::min<std::uint64_t>(batch_bytes / record_bytes, count - i);
    const std::size_t there = read(offset + i * record_bytes, batch, wanted * record_bytes) / record_bytes;
    for (std::size_t k = 0; k < there; ++k) each(i + k, batch + k * record_bytes);
    if (there < wanted) return;
    i += wanted;
  }
}

std::uint64_t segment_file::next_data(std::uint64_t offset) const noexcept {
  const off_t at = lseek(fd_, static_cast<off_t>(offset), SEEK_DATA);
  if (at >= 0) return static_cast<std::uint64_t>(at);
  // Past the end, or only a hole up to it; otherwise a file system that does not know holes.
  return errno == ENXIO ? std::numeric_limits<std::uint64_t>::max() : offset;
}

const std::byte* record_window::at(std::uint64_t offset, std::size_t bytes) {
  const bool is_inside = offset >= begin_ && offset - begin_ <= length_ && length_ - (offset - begin_) >= bytes;
  if (!is_inside) {
    length_ = file_.read(offset, lines_.data(), longest);
    begin_ = offset;
    if (length_ < bytes) return nullptr;
  }
  return reinterpret_cast<const std::byte*>(lines_.data()) + (offset - begin_);
}

}  // namespace heapwright::segment
