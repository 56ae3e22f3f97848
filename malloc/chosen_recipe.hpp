// The recipe that this malloc is made from. `heapwright build` names another, of a header that it
// has the compiler read first.
#pragma once

#include <heapwright/heap/recipe.hpp>

#ifndef HEAPWRIGHT_RECIPE
#define HEAPWRIGHT_RECIPE heapwright::default_recipe
#endif

namespace heapwright::process {

inline constexpr recipe chosen_recipe = HEAPWRIGHT_RECIPE;

}  // namespace heapwright::process
