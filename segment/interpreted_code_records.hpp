// The interpreted code that a segment has. Records are only added, so each is read once.
//
// They lie one behind the other, each as long as it says. One that is not yet complete is the last
// one; one that makes no sense ends what can be read. May be used by several threads at once.
#pragma once

#include <memory>
#include <mutex>

#include "segment_file.hpp"
#include "segment_reader.hpp"

namespace heapwright::segment {

class interpreted_code_records {
 public:
  /// All that there are now; null: none. O(new ones), and a copy of what was known where there are.
  [[nodiscard]] std::shared_ptr<const interpreted_codes> read(const segment_file& file, const segment_header& header);

 private:
  std::mutex mutex_;
  std::uint64_t read_bytes_ = 0;
  std::shared_ptr<const interpreted_codes> known_;
};

}  // namespace heapwright::segment
