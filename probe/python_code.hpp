// A code object of Python: its name, its file and its table of lines.
#pragma once

#include <cstdint>

#include "code_records.hpp"
#include "python_layout.hpp"

namespace heapwright::probe {

/// What says that it is still the same code.
[[nodiscard]] std::uint64_t version_of_python_code(std::uintptr_t code, const python_layout& layout) noexcept;

/// False: what is there cannot be a code object. `text_type`: of Python's texts. Reads nothing that
/// is not mapped.
[[nodiscard]] bool describe_python_code(std::uintptr_t code, const python_layout& layout, std::uintptr_t text_type,
                                        described_code& is) noexcept;

}  // namespace heapwright::probe
