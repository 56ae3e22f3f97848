// Where profiles are pushed to, and under which names: what the options of --push say.
#pragma once

#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace heapwright::tool {

/// As they are given.
struct push_options {
  std::string url;  ///< KIND+http[s]://HOST[:PORT][/PATH]; empty: nothing is pushed
  unsigned every_seconds = 15;
  std::vector<std::string> headers;  ///< NAME: VALUE
  std::vector<std::string> labels;   ///< NAME=VALUE
};

enum class receiver_kind { pyroscope, otlp };

struct push_target {
  receiver_kind kind = receiver_kind::pyroscope;
  std::string url;    ///< of the API that takes profiles
  std::string shown;  ///< as the user has given it
  std::vector<std::string> headers;
  std::string service;  ///< empty: each program has its own name
  std::vector<std::pair<std::string, std::string>> labels;
  std::chrono::seconds every{15};
};

/// A Pyroscope's `name` of a series, with its labels in braces, escaped for a URL. What its parser
/// does not take becomes an underscore.
[[nodiscard]] std::string pyroscope_name(const std::string& service,
                                         const std::vector<std::pair<std::string, std::string>>& labels);

/// Takes further headers from HEAPWRIGHT_PUSH_HEADERS, one on each line, and takes that variable
/// out of the environment: the program that is started has no use for a secret. Throws `failure`.
[[nodiscard]] push_target push_target_of(const push_options& options);

}  // namespace heapwright::tool
