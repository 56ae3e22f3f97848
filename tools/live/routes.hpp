// Which address shows which view, of which process: all but /api/processes take `process`, a name
// from there, and mean the first without it. An address, parameter or value that is not known is
// refused by name: a mistyped question gets no answer that looks like one.
#pragma once

#include "guard.hpp"
#include "http_server.hpp"
#include "watched_family.hpp"

namespace heapwright::tool {

class routes {
 public:
  routes(watched_family& family, guard who_may) : family_(family), guard_(std::move(who_may)) {}

  /// Called by several threads at once; throws nothing but std::bad_alloc.
  [[nodiscard]] http_response answer(const http_request& request) const;

 private:
  watched_family& family_;
  guard guard_;
};

}  // namespace heapwright::tool
