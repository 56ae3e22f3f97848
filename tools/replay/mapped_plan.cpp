#include "mapped_plan.hpp"

#include <cerrno>
#include <cstring>

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "failure.hpp"

namespace heapwright::tool {

mapped_plan::mapped_plan(int descriptor) : at_(MAP_FAILED) {
  struct stat about {};
  if (fstat(descriptor, &about) == 0) bytes_ = static_cast<std::size_t>(about.st_size);
  if (bytes_ >= sizeof footer_) at_ = mmap(nullptr, bytes_, PROT_READ, MAP_SHARED, descriptor, 0);
  if (at_ == MAP_FAILED)
    throw failure(exit_code::bad_input, fmt::format("the plan of the replay cannot be read: {}", strerror(errno)));
  std::memcpy(&footer_, static_cast<const std::byte*>(at_) + bytes_ - sizeof footer_, sizeof footer_);
}

mapped_plan::~mapped_plan() { munmap(at_, bytes_); }

}  // namespace heapwright::tool
