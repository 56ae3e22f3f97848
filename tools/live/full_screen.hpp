// The terminal as a whole, to be drawn on in place, with keys as they are pressed.
//
//   taken        its other screen, no cursor, no echo      from the constructor on, and after
//                                                          SIGCONT
//   given back   as it was found                           by the destructor, while this process is
//                                                          stopped (ctrl-Z), and by a crash
#pragma once

#include <string>

#include <termios.h>

#include "awaited_signals.hpp"
#include "descriptor.hpp"

namespace heapwright::tool {

/// One at a time in a process.
class full_screen {
 public:
  /// What it waits for.
  static constexpr std::initializer_list<int> signals = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH};

  /// `of_signals` are those above, blocked in all threads, and outlive this.
  explicit full_screen(const awaited_signals& of_signals);
  full_screen(const full_screen&) = delete;
  full_screen& operator=(const full_screen&) = delete;
  ~full_screen();

  void draw(const std::string& lines) const;

  /// True when the time is over, or when there is another reason to draw anew: another size, the
  /// end of a stop. False when the user has had enough: q, ctrl-C, the end of the input. Throws
  /// `interrupted` for a signal that asks for the end.
  [[nodiscard]] bool wait(double seconds) const;

 private:
  void take() const;
  void give_back() const;

  const awaited_signals& signals_;
  termios before_{};
  descriptor arrivals_;  ///< becomes readable when a signal has come
  bool has_keys_ = false;
};

}  // namespace heapwright::tool
