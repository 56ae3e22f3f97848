// One HTTP/1.1 request, taken from bytes that anybody may have sent.
//
// Strict on purpose: whatever is not plainly a small GET, HEAD or POST is refused with the status
// that says why, before anything acts on it. Every length is bounded while it is read, so that no
// sender makes this process keep more than `limits` say.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace heapwright::tool {

struct http_request {
  std::string method;
  std::string path;                                          ///< percent-decoded, without the query
  std::vector<std::pair<std::string, std::string>> query;    ///< percent-decoded
  std::vector<std::pair<std::string, std::string>> headers;  ///< names in lower case
  std::string body;
  bool keep_alive = true;

  /// Null if there is none.
  [[nodiscard]] const std::string* header(std::string_view name) const noexcept;
  [[nodiscard]] const std::string* parameter(std::string_view name) const noexcept;
};

namespace http_limits {
inline constexpr std::size_t head_bytes = 16 * 1024;
inline constexpr std::size_t target_bytes = 4 * 1024;
inline constexpr std::size_t headers = 64;
inline constexpr std::size_t body_bytes = 16 * 1024;
inline constexpr std::size_t parameters = 16;
}  // namespace http_limits

/// What came of looking at the bytes received so far.
struct http_parse {
  int refused = 0;           ///< the status to refuse it with; 0: it is well so far
  std::size_t consumed = 0;  ///< bytes of a whole request; 0: more must come
  http_request request;
};

[[nodiscard]] http_parse parse_request(std::string_view received);

/// Nothing for a broken escape or a null character. `plus_is_space` as in forms and queries.
[[nodiscard]] std::optional<std::string> percent_decoded(std::string_view text, bool plus_is_space);

/// "a=1&b=2"; nothing if it is malformed, too long, or gives a name twice.
[[nodiscard]] std::optional<std::vector<std::pair<std::string, std::string>>> parsed_form(std::string_view text);

}  // namespace heapwright::tool
