// Which address shows which view, of which process: all but /api/processes take `process`, a name
// or an id from there, and mean the first without it. An address, parameter or value that is not
// known is refused by name: a mistyped question gets no answer that looks like one.
#pragma once

#include "guard.hpp"
#include "http_server.hpp"
#include "watched_family.hpp"

namespace heapwright::tool {

struct shown_run {
  watched_family& family;
  std::string advice;  ///< advice_view
};

/// Of any of the addresses. Throws nothing but std::bad_alloc.
[[nodiscard]] http_response answer_of(const http_request& request, const shown_run& what);

/// Answers those who may ask.
class routes {
 public:
  routes(shown_run what, guard who_may) : what_(std::move(what)), guard_(std::move(who_may)) {}

  /// Called by several threads at once; throws nothing but std::bad_alloc.
  [[nodiscard]] http_response answer(const http_request& request) const;

 private:
  shown_run what_;
  guard guard_;
};

}  // namespace heapwright::tool
