#include "ring_source.hpp"

#include <cstring>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "descriptor.hpp"

namespace heapwright::tool {

using trace::ring_file;
using trace::ring_record;

std::unique_ptr<ring_source> ring_source::open(const std::filesystem::path& file) {
  const descriptor opened(::open(file.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  struct stat is {};
  if (!opened || fstat(opened.get(), &is) != 0 || static_cast<std::size_t>(is.st_size) < sizeof(ring_file))
    return nullptr;
  const auto bytes = static_cast<std::size_t>(is.st_size);
  void* const p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, opened.get(), 0);
  if (p == MAP_FAILED) return nullptr;
  auto* const rings = static_cast<ring_file*>(p);
  const bool is_begun = std::atomic_ref(rings->magic.front()).load(std::memory_order_acquire) != 0;
  const bool is_right = is_begun && rings->magic == ring_file::right_magic &&
                        rings->version == ring_file::right_version && rings->rings > 0 && rings->rings <= 1 << 16 &&
                        std::has_single_bit(rings->records) && rings->records <= 1 << 24 &&
                        rings->records_at + rings->rings * rings->records * sizeof(ring_record) == bytes;
  if (!is_right) {
    munmap(p, bytes);
    return nullptr;
  }
  return std::unique_ptr<ring_source>(new ring_source(rings, bytes));
}

ring_source::ring_source(ring_file* file, std::size_t bytes) : file_(file), bytes_(bytes), positions_(file->rings) {
  for (std::uint32_t ring = 0; ring < file->rings; ++ring)
    positions_[ring].read = file->head(ring).read.load(std::memory_order_relaxed);
}

ring_source::~ring_source() { munmap(file_, bytes_); }

}  // namespace heapwright::tool
