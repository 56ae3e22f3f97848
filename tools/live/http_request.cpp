// Follows RFC 9112, less everything a viewer does not need: chunked bodies, folded headers,
// absolute targets, upgrades.
#include "http_request.hpp"

#include <algorithm>
#include <charconv>

namespace heapwright::tool {
namespace {

bool is_token(std::string_view text) {
  const auto allowed = [](unsigned char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           std::string_view("!#$%&'*+-.^_`|~").find(static_cast<char>(c)) != std::string_view::npos;
  };
  return !text.empty() && std::all_of(text.begin(), text.end(), allowed);
}

bool is_printable(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](unsigned char c) { return c > 0x20 && c < 0x7f; });
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return result;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

const std::string* find(const std::vector<std::pair<std::string, std::string>>& pairs, std::string_view name) noexcept {
  for (const auto& [key, value] : pairs)
    if (key == name) return &value;
  return nullptr;
}

/// The status to refuse the request line with, or 0.
int take_request_line(std::string_view line, http_request& request) {
  const auto first = line.find(' ');
  const auto last = line.rfind(' ');
  if (first == std::string_view::npos || last == first) return 400;
  const std::string_view method = line.substr(0, first), target = line.substr(first + 1, last - first - 1),
                         version = line.substr(last + 1);
  if (!is_token(method) || (version != "HTTP/1.1" && version != "HTTP/1.0")) return 400;
  if (target.size() > http_limits::target_bytes) return 414;
  if (!is_printable(target) || target.empty() || target.front() != '/' || target.find('#') != std::string_view::npos)
    return 400;
  if (method != "GET" && method != "HEAD" && method != "POST") return 405;
  request.method = method;
  request.keep_alive = version == "HTTP/1.1";
  const auto mark = target.find('?');
  const auto path = percent_decoded(target.substr(0, mark), false);
  auto query = parsed_form(mark == std::string_view::npos ? std::string_view() : target.substr(mark + 1));
  if (!path || !query) return 400;
  request.path = *path;
  request.query = std::move(*query);
  return 0;
}

int take_header(std::string_view line, http_request& request) {
  const auto colon = line.find(':');
  if (colon == std::string_view::npos || !is_token(line.substr(0, colon))) return 400;
  const std::string_view value = trimmed(line.substr(colon + 1));
  const auto allowed = [](unsigned char c) { return c == '\t' || (c >= 0x20 && c != 0x7f); };
  if (!std::all_of(value.begin(), value.end(), allowed)) return 400;
  if (request.headers.size() == http_limits::headers) return 431;
  request.headers.emplace_back(lower(line.substr(0, colon)), value);
  return 0;
}

/// How long the body is, and what the connection is to become; a status to refuse it with, or 0.
int take_framing(http_request& request, std::size_t& body_bytes) {
  unsigned hosts = 0, lengths = 0;
  for (const auto& [name, value] : request.headers) {
    if (name == "transfer-encoding") return 411;
    if (name == "expect" || name == "upgrade") return 417;
    if (name == "host") ++hosts;
    if (name == "connection" && lower(value).find("close") != std::string::npos) request.keep_alive = false;
    if (name != "content-length") continue;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), body_bytes);
    if (error == std::errc::result_out_of_range) return 413;
    if (++lengths > 1 || error != std::errc() || end != value.data() + value.size()) return 400;
  }
  if (hosts != 1) return 400;
  if (request.method == "POST" && lengths == 0) return 411;
  if (request.method != "POST" && body_bytes > 0) return 400;
  return body_bytes > http_limits::body_bytes ? 413 : 0;
}

}  // namespace

const std::string* http_request::header(std::string_view name) const noexcept { return find(headers, name); }
const std::string* http_request::parameter(std::string_view name) const noexcept { return find(query, name); }

std::optional<std::string> percent_decoded(std::string_view text, bool plus_is_space) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '+' && plus_is_space) c = ' ';
    if (c == '%') {
      unsigned value = 0;
      if (i + 2 >= text.size()) return std::nullopt;
      const auto [end, error] = std::from_chars(text.data() + i + 1, text.data() + i + 3, value, 16);
      if (error != std::errc() || end != text.data() + i + 3 || value == 0) return std::nullopt;
      c = static_cast<char>(value);
      i += 2;
    }
    result += c;
  }
  return result;
}

std::optional<std::vector<std::pair<std::string, std::string>>> parsed_form(std::string_view text) {
  std::vector<std::pair<std::string, std::string>> result;
  while (!text.empty()) {
    const auto end = text.find('&');
    const std::string_view pair = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (pair.empty()) continue;
    const auto equals = pair.find('=');
    const auto name = percent_decoded(pair.substr(0, equals), true);
    const auto value =
        percent_decoded(equals == std::string_view::npos ? std::string_view() : pair.substr(equals + 1), true);
    if (!name || !value || find(result, *name) != nullptr || result.size() == http_limits::parameters)
      return std::nullopt;
    result.emplace_back(*name, *value);
  }
  return result;
}

http_parse parse_request(std::string_view received) {
  http_parse result;
  const auto refuse = [&](int status) {
    result.refused = status;
    return std::move(result);
  };
  const std::string_view head = received.substr(0, http_limits::head_bytes);
  std::size_t at = 0;
  for (bool is_first = true;; is_first = false) {
    const auto newline = head.find('\n', at);
    const std::string_view line = head.substr(at, newline == std::string_view::npos ? newline : newline - at);
    if (newline == std::string_view::npos) {
      if (received.size() >= http_limits::head_bytes) return refuse(is_first ? 414 : 431);
      // Not HTTP at all is refused at once; waiting would only keep the connection.
      const auto odd = [](unsigned char c) { return (c < 0x20 && c != '\r' && c != '\t') || c == 0x7f; };
      if (std::any_of(line.begin(), line.end(), odd)) return refuse(400);
      return result;
    }
    if (line.empty() || line.back() != '\r') return refuse(400);
    const std::string_view text = line.substr(0, line.size() - 1);
    at = newline + 1;
    if (text.empty() && !is_first) break;
    if (const int status = is_first ? take_request_line(text, result.request) : take_header(text, result.request);
        status != 0)
      return refuse(status);
  }
  std::size_t body_bytes = 0;
  if (const int status = take_framing(result.request, body_bytes); status != 0) return refuse(status);
  if (received.size() - at < body_bytes) return result;
  result.request.body = received.substr(at, body_bytes);
  result.consumed = at + body_bytes;
  return result;
}

}  // namespace heapwright::tool
