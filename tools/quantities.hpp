// Quantities as people read them: a unit, and no more digits than one looks at.
#pragma once

#include <cstdint>
#include <string>

namespace heapwright::tool {

/// "1.25 s", "12.0 ms".
std::string show_seconds(double value);
/// In units of 1024: "512 B", "12 KiB", "1.5 MiB".
std::string show_bytes(double value);
/// Whole, in groups of three digits.
std::string show_count(double value);
/// "1 block", "2,048 blocks".
std::string show_count_of(std::uint64_t n, const char* one);
/// Four digits: of a figure whose unit only the driver knows.
std::string show_number(double value);

}  // namespace heapwright::tool
