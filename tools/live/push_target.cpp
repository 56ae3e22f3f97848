#include "push_target.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <sstream>
#include <string_view>

#include <fmt/format.h>

#include "failure.hpp"
#include "printable.hpp"

namespace heapwright::tool {
namespace {

bool is_letter_or_digit(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); }

bool has_control(std::string_view text) {
  return std::ranges::any_of(text, [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

/// `named`: the option, or the variable of the environment.
void add_header(push_target& to, const std::string& header, const char* named) {
  const auto colon = header.find(':');
  const bool is_name = colon != 0 && colon != std::string::npos &&
                       std::all_of(header.begin(), header.begin() + static_cast<std::ptrdiff_t>(colon),
                                   [](char c) { return is_letter_or_digit(c) || c == '-' || c == '_'; });
  // The value may be a secret: it is not repeated.
  if (!is_name || has_control(header))
    throw failure(exit_code::bad_input, fmt::format("{} takes NAME: VALUE, as 'Authorization: Bearer TOKEN'", named));
  std::string name = header.substr(0, colon);
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
  for (const std::string_view own : {"content-length", "content-type", "content-encoding", "transfer-encoding", "host"})
    if (name == own)
      throw failure(exit_code::bad_input, fmt::format("{}: {} is what the request itself says", named, own));
  to.headers.push_back(header);
}

void add_label(push_target& to, const std::string& label) {
  const auto equals = label.find('=');
  const std::string name = label.substr(0, equals), value = equals == std::string::npos ? "" : label.substr(equals + 1);
  const bool is_name = !name.empty() && !(name[0] >= '0' && name[0] <= '9') && name[0] != '.' &&
                       std::ranges::all_of(name, [](char c) { return is_letter_or_digit(c) || c == '_' || c == '.'; });
  if (!is_name || value.empty() || value.find_first_of(",{}") != std::string::npos || has_control(value))
    throw failure(exit_code::bad_input,
                  fmt::format("--push-label {}: it is NAME=VALUE, the name of letters, digits, _ and dots, the value "
                              "without commas and braces",
                              printable(label)));
  std::string dotless = name;
  std::ranges::replace(dotless, '.', '_');
  const auto is_this = [&](std::string other) {
    std::ranges::replace(other, '.', '_');
    return other == dotless;
  };
  const bool is_service = is_this("service.name");
  if (is_this("host.name") || is_this("process.executable.name") || is_this("process.pid"))
    throw failure(exit_code::bad_input, fmt::format("--push-label {}: profiles have it of themselves", name));
  if (is_service ? !to.service.empty()
                 : std::ranges::any_of(to.labels, is_this, &std::pair<std::string, std::string>::first))
    throw failure(exit_code::bad_input, fmt::format("--push-label {}: it is given twice", name));
  if (is_service)
    to.service = value;
  else
    to.labels.emplace_back(name, value);
}

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (is_letter_or_digit(c) || std::string_view("-._~").find(c) != std::string_view::npos)
      result += c;
    else
      result += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return result;
}

}  // namespace

std::string pyroscope_name(const std::string& service, const std::vector<std::pair<std::string, std::string>>& labels) {
  std::string name = service;
  for (char& c : name)
    if (!is_letter_or_digit(c) && std::string_view("-._/").find(c) == std::string_view::npos) c = '_';
  name += '{';
  bool is_first = true;
  for (const auto& [key, value] : labels) {
    if (!std::exchange(is_first, false)) name += ',';
    for (const char c : key) name += c == '.' ? '_' : c;
    name += '=';
    for (const char c : value) name += c == ',' || c == '{' || c == '}' || has_control({&c, 1}) ? '_' : c;
  }
  return escaped(name + '}');
}

push_target push_target_of(const push_options& options) {
  const auto wrong_url = [&] {
    return failure(
        exit_code::bad_input,
        fmt::format("--push {}: it takes pyroscope+http://HOST:PORT or otlp+http://HOST:PORT, or https, with "
                    "a path where the receiver is below one",
                    printable(options.url)));
  };
  push_target target;
  target.shown = options.url;
  target.every = std::chrono::seconds(options.every_seconds);
  const auto plus = options.url.find('+');
  const std::string kind = options.url.substr(0, plus);
  if (plus == std::string::npos || (kind != "pyroscope" && kind != "otlp")) throw wrong_url();
  target.kind = kind == "otlp" ? receiver_kind::otlp : receiver_kind::pyroscope;
  target.url = options.url.substr(plus + 1);
  const auto host = target.url.find("://") + 3;
  const bool is_http = target.url.starts_with("http://") || target.url.starts_with("https://");
  if (!is_http || host == target.url.size() || target.url[host] == '/' || target.url[host] == ':' ||
      target.url.find_first_of("?# ") != std::string::npos)
    throw wrong_url();
  while (target.url.ends_with('/')) target.url.pop_back();
  target.url += target.kind == receiver_kind::otlp ? "/v1development/profiles" : "/ingest";
  for (const std::string& header : options.headers) add_header(target, header, "--push-header");
  if (const char* const lines = std::getenv("HEAPWRIGHT_PUSH_HEADERS"); lines != nullptr) {
    std::istringstream all(lines);
    for (std::string line; std::getline(all, line);)
      if (!line.empty()) add_header(target, line, "HEAPWRIGHT_PUSH_HEADERS");
    unsetenv("HEAPWRIGHT_PUSH_HEADERS");
  }
  for (const std::string& label : options.labels) add_label(target, label);
  return target;
}

}  // namespace heapwright::tool
