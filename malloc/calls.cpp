#include "calls.hpp"

#include <sys/auxv.h>
#include <unistd.h>

#include <heapwright/core/call_stack.hpp>
#include <heapwright/core/text.hpp>

#include "../abi/own_object.hpp"

namespace heapwright::process {

void calls::note(unwind::machine_state from) noexcept {
  // In a program that has libheapwright.a within it, its own calls cannot be told from ours.
  const bool is_within_program = is_in_own_object(::getauxval(AT_ENTRY));
  count = 0;
  thread = static_cast<std::uint64_t>(::gettid());
  const unwind::stack_bounds stack(from.sp, unwind::end_of_this_stack());
  for (unsigned steps = 0; steps < 64 && count < most; ++steps) {
    if (is_within_program || !is_in_own_object(from.pc - 1)) at[count++] = from.pc;
    unwind::code_object object{};
    unwind::places read;
    if (!unwind::step(from, unwind::find_frame_rule(from.pc - 1, object), stack, read)) return;
  }
}

void calls::write(const char* what) const noexcept {
  text<100>().add("  ").add(what).add(" in thread ").add(thread).add(":\n").write_to(2);
  call_stack::of(at.data(), count).write_to(2);
}

}  // namespace heapwright::process
