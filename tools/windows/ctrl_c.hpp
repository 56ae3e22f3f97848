// Ctrl-C, while there is something to clear up before this process ends.
//
// States: noted, by a thread that the system makes for it; what clears up asks. What was started in
// the same console gets it too.
#pragma once

#include "command.hpp"

namespace heapwright::tool {

class awaited_ctrl_c {
 public:
  awaited_ctrl_c() noexcept { ::SetConsoleCtrlHandler(note, TRUE); }
  awaited_ctrl_c(const awaited_ctrl_c&) = delete;
  awaited_ctrl_c& operator=(const awaited_ctrl_c&) = delete;
  ~awaited_ctrl_c() { ::SetConsoleCtrlHandler(note, FALSE); }

  /// Set once it has come.
  [[nodiscard]] static HANDLE event() noexcept { return noted_.get(); }
  [[nodiscard]] static bool has_come() noexcept { return ::WaitForSingleObject(event(), 0) == WAIT_OBJECT_0; }

 private:
  static BOOL WINAPI note(DWORD) noexcept { return ::SetEvent(event()); }

  static inline const handle noted_{::CreateEventW(nullptr, TRUE, FALSE, nullptr)};
};

}  // namespace heapwright::tool
