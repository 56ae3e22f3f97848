#include "thread_names.hpp"

#include <algorithm>

namespace heapwright::probe {

using namespace segment;

void thread_names::inherit_from(const segment_header& parents) noexcept {
  const std::uint64_t n =
      std::min(parents.thread_names_used.load(std::memory_order_acquire), header_->thread_names.size());
  std::copy_n(parents.thread_names.begin(), n, header_->thread_names.begin());
  header_->thread_names_used.store(n, std::memory_order_release);
}

std::uint32_t thread_names::find(const thread_name& name) const noexcept {
  const std::uint64_t n = header_->thread_names_used.load(std::memory_order_acquire);
  const thread_name *const begin = header_->thread_names.data(), *const end = begin + n;
  const thread_name* const found = std::find(begin, end, name);
  return found == end ? 0 : static_cast<std::uint32_t>(found - begin) + 1;
}

std::uint32_t thread_names::number_of(const thread_name& name) noexcept {
  if (const std::uint32_t known = find(name); known != 0) return known;
  holding guard(lock_);
  if (const std::uint32_t known = find(name); known != 0) return known;
  const std::uint64_t n = header_->thread_names_used.load(relaxed);
  if (n == header_->thread_names.size()) return 0;
  header_->thread_names[n] = name;
  header_->thread_names_used.store(n + 1, std::memory_order_release);
  return static_cast<std::uint32_t>(n + 1);
}

}  // namespace heapwright::probe
