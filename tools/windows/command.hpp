// What all subcommands of heapwright.exe share: how they end, and words.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "../../malloc/windows/windows_headers.hpp"

namespace heapwright::tool {

namespace exit_code {
inline constexpr int trouble = 1;
inline constexpr int bad_words = 2;
inline constexpr int not_started = 125;  ///< the program did not run, or not on the library
inline constexpr int not_found = 127;    ///< there is no such program
}  // namespace exit_code

/// Ends the command with a sentence.
struct failure : std::runtime_error {
  failure(int with, const std::string& what) : std::runtime_error(what), code(with) {}
  int code;
};

using words = std::vector<std::wstring>;

int run(const words& given);
int info(const words& given);
int compare(const words& given);

/// UTF-8.
[[nodiscard]] std::string narrow(std::wstring_view s);

/// What the system says of an error number.
[[nodiscard]] std::string message_of(DWORD error);

/// Closes what the system has given.
class handle {
 public:
  explicit handle(HANDLE h = nullptr) noexcept : is_(h) {}
  handle(handle&& other) noexcept : is_(other.is_) { other.is_ = nullptr; }
  handle& operator=(handle&&) = delete;
  handle(const handle&) = delete;
  handle& operator=(const handle&) = delete;
  ~handle() {
    if (*this) ::CloseHandle(is_);
  }

  [[nodiscard]] HANDLE get() const noexcept { return is_; }
  explicit operator bool() const noexcept { return is_ != nullptr && is_ != INVALID_HANDLE_VALUE; }

 private:
  HANDLE is_;
};

}  // namespace heapwright::tool
