// The memory of a stopped process: what is mapped, and what is in it.
//
// Pages that have never been touched are not read: reading would give the process page tables for
// them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <sys/types.h>

#include "descriptor.hpp"

namespace heapwright::tool {

/// Pages of all kernels are multiples of this.
inline constexpr std::uint64_t page_bytes = 4096;

struct address_range {
  std::uint64_t begin = 0, end = 0;

  [[nodiscard]] bool contains(std::uint64_t address) const noexcept { return address >= begin && address < end; }
  bool operator==(const address_range&) const = default;
};

struct memory_mapping {
  address_range at;
  bool is_readable = false, is_writable = false, is_shared = false;
  std::string path;  ///< as /proc/PID/maps has it; empty: anonymous
};

[[nodiscard]] std::vector<memory_mapping> mappings_in_text(const std::string& maps);

/// Where a scan finds words. A test puts its own memory here.
class word_source {
 public:
  word_source() = default;
  word_source(const word_source&) = delete;
  word_source& operator=(const word_source&) = delete;
  virtual ~word_source() = default;

  /// Calls `each` with all aligned words of the range that can be read, in pieces.
  virtual void for_each_words(address_range range, const std::function<void(std::span<const std::uint64_t>)>& each) = 0;
};

/// Not for several threads at once.
class process_memory final : public word_source {
 public:
  /// `thread`: of the process, stopped, not gone.
  process_memory(pid_t process, pid_t thread);

  [[nodiscard]] std::vector<memory_mapping> mappings() const;
  /// False: not all of it can be read.
  [[nodiscard]] bool read(std::uint64_t address, void* into, std::size_t bytes) const;
  void for_each_words(address_range range, const std::function<void(std::span<const std::uint64_t>)>& each) override;

 private:
  /// The words of one page; null if it cannot be read. Valid until the next call.
  const std::uint64_t* page(std::uint64_t address);
  [[nodiscard]] std::vector<bool> touched_pages(std::uint64_t first, std::size_t count) const;

  pid_t process_, thread_;
  descriptor pages_;
  std::vector<std::uint64_t> cached_addresses_;
  /// Not initialised: the system gives memory only to the part that a scan uses, as each process
  /// has a cache of its own.
  std::unique_ptr<std::uint64_t[]> cached_words_;
};

}  // namespace heapwright::tool
