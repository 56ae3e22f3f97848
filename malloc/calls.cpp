#include "calls.hpp"

#include <sys/auxv.h>
#include <unistd.h>

#include <heapwright/core/call_stack.hpp>
#include <heapwright/core/text.hpp>

#include "../abi/misuse_reports.hpp"
#include "../abi/own_object.hpp"
#include "../unwind/readable.hpp"

namespace heapwright::process {

namespace {

bool is_ours(std::uintptr_t pc, bool is_within_program) noexcept {
  if (&heapwright_probe_has_code_at != nullptr && heapwright_probe_has_code_at(pc)) return true;
  return !is_within_program && is_in_own_object(pc);
}

}  // namespace

void calls::note(unwind::machine_state from) noexcept {
  // In a program that has libheapwright.a within it, its own calls cannot be told from ours.
  const bool is_within_program = is_in_own_object(::getauxval(AT_ENTRY));
  count = 0;
  thread = static_cast<std::uint64_t>(::gettid());
  const auto is_readable = [](std::uintptr_t begin, std::size_t bytes) { return unwind::is_readable(begin, bytes); };
  unwind::stack_bounds stack(from.sp, unwind::end_of_this_stack());
  for (unsigned steps = 0; steps < 64 && count < most; ++steps) {
    if (!is_ours(from.pc - 1, is_within_program)) at[count++] = from.pc;
    unwind::code_object object{};
    unwind::places read;
    const unwind::frame_rule rule = unwind::find_frame_rule(from.pc - 1, object);
    if (!unwind::step(from, rule, stack, read, is_readable)) return;
  }
}

void calls::write(const char* what, misuse_report& to) const noexcept {
  to.write(text<100>().add("  ").add(what).add(" in thread ").add(thread).add(":\n").view());
  call_stack::of(at.data(), count).for_each_line([&](const auto& line) { to.write(line.view()); });
}

}  // namespace heapwright::process
