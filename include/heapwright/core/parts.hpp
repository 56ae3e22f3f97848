// Arguments for a part of a composed allocator. Allocators that blocks point into can be neither
// copied nor moved, so a part is constructed where it lies:
//
//   fallback<stack_arena<4096>, pool<>> a{from(), from(layout{64, 8})};
#pragma once

#include <tuple>
#include <utility>

#include <heapwright/core/language.hpp>

namespace heapwright {

/// Only for passing on at once: it refers to its arguments.
template <class... Arguments>
[[nodiscard]] constexpr std::tuple<Arguments&&...> from(Arguments&&... arguments) noexcept {
  return std::forward_as_tuple(std::forward<Arguments>(arguments)...);
}

/// A Part from such arguments, constructed in the place that the result initialises.
template <class Part, class... Arguments>
[[nodiscard]] constexpr Part built(std::tuple<Arguments...>&& arguments) {
  return std::make_from_tuple<Part>(std::move(arguments));
}

}  // namespace heapwright
