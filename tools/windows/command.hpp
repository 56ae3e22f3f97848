// What all subcommands of heapwright.exe share: how they end, and words.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../../malloc/windows/windows_headers.hpp"
#include "../failure.hpp"

namespace heapwright::tool {

/// Beside those of ../failure.hpp.
namespace exit_code {
inline constexpr int trouble = 1;
inline constexpr int bad_words = 2;
inline constexpr int not_started = 125;  ///< the program did not run, or not on the library
}  // namespace exit_code

using words = std::vector<std::wstring>;

int build(const words& given);
int compare(const words& given);
int info(const words& given);
int run(const words& given);
int top(const words& given);

/// To UTF-8, in which all text and names of files are but those of the system's own calls.
[[nodiscard]] std::string narrow(std::wstring_view s);
[[nodiscard]] std::wstring wide(std::string_view s);

/// The path of a file that is there. Throws `failure`. Tells of one that heapwright has not built,
/// which may be a malloc of others, or none.
[[nodiscard]] std::wstring library_named(const std::wstring& name, const char* subcommand);

/// What the system says of an error number.
[[nodiscard]] std::string message_of(DWORD error);

/// Closes what the system has given.
class handle {
 public:
  explicit handle(HANDLE h = nullptr) noexcept : is_(h) {}
  handle(handle&& other) noexcept : is_(other.is_) { other.is_ = nullptr; }
  handle& operator=(handle&& other) noexcept {
    std::swap(is_, other.is_);
    return *this;
  }
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
