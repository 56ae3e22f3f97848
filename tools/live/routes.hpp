// Which address shows which view. An address, parameter or value that is not known is refused by name: a mistyped question gets no answer that looks
// like one.
#pragma once

#include "guard.hpp"
#include "http_server.hpp"
#include "watched_process.hpp"

namespace heapwright::tool {

class routes {
 public:
  routes(watched_process& process, guard who_may) : process_(process), guard_(std::move(who_may)) {}

  /// Called by several threads at once; throws nothing but std::bad_alloc.
  [[nodiscard]] http_response answer(const http_request& request) const;

 private:
  watched_process& process_;
  guard guard_;
};

}  // namespace heapwright::tool
