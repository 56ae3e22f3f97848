#include "interpreter.hpp"

namespace heapwright::probe {

constinit interpreter the_interpreter;

namespace {

constexpr unsigned trials_until_believed = 64;

}  // namespace

void interpreter::reset(segment::segment_header& h) noexcept {
  header_ = &h;
  h.interpreter_at.store(loop_.begin, segment::relaxed);
  codes_.reset(h);
}

/// Two threads may have found one each: one of them wins.
template <class Part>
bool interpreter::take(const exported_symbols& symbols, Part& part, language of) noexcept {
  Part found;
  const code_range loop = found.find_in(symbols);
  if (loop.begin == 0) return false;
  state expected = state::unknown;
  if (!state_.compare_exchange_strong(expected, state::being_found, std::memory_order_relaxed)) return true;
  part = found;
  language_ = of;
  loop_ = loop;
  header_->interpreter_at.store(loop.begin, segment::relaxed);
  state_.store(state::on_trial, std::memory_order_release);
  return true;
}

void interpreter::look_into(const unwind::code_object& file) noexcept {
  if (state_.load(std::memory_order_relaxed) != state::unknown) return;
  const exported_symbols symbols(file);
  (void)(take(symbols, python_, language::python) || take(symbols, php_, language::php) ||
         take(symbols, ruby_, language::ruby) || take(symbols, perl_, language::perl));
}

void interpreter::forget() noexcept {
  for (state is : {state::on_trial, state::believed})
    if (state_.compare_exchange_strong(is, state::unknown, std::memory_order_relaxed))
      trials_.store(0, std::memory_order_relaxed);
}

interpreter::answer interpreter::walk(interpreted_calls& calls) noexcept {
  calls.clear();
  const state is = state_.load(std::memory_order_acquire);
  if (is == state::unknown || is == state::being_found) return answer::none_yet;
  if (is == state::refused) return answer::known;
  if (language_ != language::python) return answer::by_native_calls;
  walk_in(is, calls);
  return answer::known;
}

void interpreter::walk_with(const call_memo& native, interpreted_calls& calls) noexcept {
  calls.clear();
  const state is = state_.load(std::memory_order_acquire);
  if (is != state::on_trial && is != state::believed) return;
  bool is_within = language_ == language::python;
  for (unsigned i = 0; i < native.depth() && !is_within; ++i) {
    if (language_ == language::perl && perl_.moves_contexts(native.address(i))) return;
    is_within = is_in_loop(native.address(i));
  }
  if (is_within) walk_in(is, calls);
}

void interpreter::walk_in(state is, interpreted_calls& calls) noexcept {
  const bool is_on_trial = is == state::on_trial;
  memory_reader by(is_on_trial || language_ == language::perl);
  if (!read(by, calls)) {
    calls.clear();
    if (is_on_trial) state_.store(state::refused, std::memory_order_relaxed);
    return;
  }
  if (is_on_trial && calls.count() != 0 && trials_.fetch_add(1, std::memory_order_relaxed) + 1 == trials_until_believed)
    state_.store(state::believed, std::memory_order_relaxed);
}

bool interpreter::read(memory_reader& by, interpreted_calls& calls) noexcept {
  switch (language_) {
    case language::python: return python_.walk(by, codes_, calls);
    case language::php: return php_.walk(by, codes_, calls);
    case language::ruby: return ruby_.walk(by, codes_, calls);
    case language::perl: return perl_.walk(by, codes_, calls);
  }
  return false;
}

}  // namespace heapwright::probe
