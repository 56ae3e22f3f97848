// What the words after --with name: libraries, and recipes that a library is made of here, which
// goes away with this object.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "allocators.hpp"
#include "interruptible.hpp"
#include "recipe_build.hpp"

namespace heapwright::tool {

class given_allocators {
 public:
  /// `subcommand`: who asks, for messages. Throws `failure`.
  given_allocators(const char* subcommand, const std::vector<std::string>& words);

  [[nodiscard]] const std::vector<allocator>& all() const noexcept { return all_; }

 private:
  std::optional<interruptible> guard_;  ///< outlives what would be left behind
  std::vector<std::unique_ptr<recipe_build>> recipes_;
  std::vector<allocator> all_;
};

}  // namespace heapwright::tool
