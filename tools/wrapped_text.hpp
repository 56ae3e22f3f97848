// Sentences in lines that a terminal does not break.
#pragma once

#include <cstddef>
#include <string>

namespace heapwright::tool {

/// The words of `text` in lines of at most `width` characters, each with its line break. The first
/// begins at `column`, as what stands before it is written already; the others are indented by
/// `indent` spaces. A word that is longer than a line has one of its own. Width 0: one line.
[[nodiscard]] std::string wrapped(const std::string& text, std::size_t column, std::size_t indent, std::size_t width);

}  // namespace heapwright::tool
