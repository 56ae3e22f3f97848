// What the tool says: answers on standard output, messages on standard error.
//
// An answer that does not arrive is an error (a full disk, a closed descriptor), which
// finish_answers tells main. A message that does not arrive is none: daemons and cron jobs run with
// a closed standard error.
#pragma once

#include <string>
#include <utility>

#include <fmt/format.h>

namespace heapwright::tool {

/// Writes a message as it is. False: it is lost.
bool tell_text(const std::string& text) noexcept;

template <class... Arguments>
void tell(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  tell_text(fmt::format(format, std::forward<Arguments>(arguments)...));
}

/// Part of an answer, as it is. Throws failure if standard output does not take it.
void answer_text(const std::string& text);

template <class... Arguments>
void answer(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  answer_text(fmt::format(format, std::forward<Arguments>(arguments)...));
}

/// Whether the descriptor is a terminal that moves its cursor as it is told. TERM=dumb and no TERM
/// say that it does not.
bool can_draw(int descriptor) noexcept;

/// can_draw, and NO_COLOR is not set or empty (no-color.org).
bool wants_colour(int descriptor) noexcept;

/// The columns of the terminal; 0 where there is none, or it does not say.
[[nodiscard]] unsigned columns_of(int descriptor) noexcept;

/// The start of a line of text that fits so many columns and leaves the last one free, so that no
/// terminal wraps it. Each character is taken to need one column. 0: all of it.
[[nodiscard]] std::string cut_to_columns(const std::string& text, unsigned columns);

/// What long work is doing now: a line on standard error that the next call replaces, and an empty
/// text takes away. Nothing where standard error is no terminal.
void show_step(const std::string& text) noexcept;

/// Where the standard descriptors are closed, puts something there until the next exec, so that no
/// file of ours gets their numbers. Writing to it fails, as before. To be called first.
void occupy_standard_descriptors() noexcept;

/// Flushes standard output. Throws failure if anything written to it was lost.
void finish_answers();

}  // namespace heapwright::tool
