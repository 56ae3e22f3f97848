// Text of a man page, in the macros of man(7).
#pragma once

#include <string>
#include <string_view>

namespace heapwright::tool::roff {

/// As text of a page: nothing in it is a request of roff, and each sign prints as it is.
std::string plain(std::string_view text);

std::string bold(std::string_view text);

/// The title of a page of this section of the manual (1: commands), and what the page is about.
std::string heading(const std::string& page, int number, const std::string& about);

/// The heading of a section of a page, in capitals.
std::string section(std::string title);

/// A name, and indented behind it what it is. `text` is roff already.
std::string entry(const std::string& name, const std::string& text);

}  // namespace heapwright::tool::roff
