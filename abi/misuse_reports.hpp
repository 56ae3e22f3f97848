// How libheapwright hands its misuse reports to the probe. The functions are the probe's; where the
// process has no probe they are null.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {
/// Number of a new report; negative: there is no room for it.
[[gnu::weak]] int heapwright_probe_begin_report() noexcept;
[[gnu::weak]] void heapwright_probe_add_to_report(int number, const char* text, std::size_t bytes) noexcept;
/// A mistake of the program, of which there is this report; negative: none.
[[gnu::weak]] void heapwright_probe_count_mistake(int number) noexcept;
/// Whether code at this address is the probe's.
[[gnu::weak]] bool heapwright_probe_has_code_at(std::uintptr_t address) noexcept;
}
