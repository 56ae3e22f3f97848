// The word that a person meant who wrote another one.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace heapwright::tool {

/// The one of `words` that takes the fewest letters left out, put in, replaced or swapped with
/// their neighbour (optimal string alignment). Empty where that is more than a third of its
/// letters, rounded up. O(letters of all words times letters of `written`).
std::string_view nearest_word(std::string_view written, std::span<const std::string> words);

}  // namespace heapwright::tool
