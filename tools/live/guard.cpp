#include "guard.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <sys/random.h>

namespace heapwright::tool {
namespace {

/// Takes as long for a wrong token as for the right one.
bool is_same(const std::string& a, const std::string& b) {
  if (a.size() != b.size()) return false;
  volatile unsigned char difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    difference =
        static_cast<unsigned char>(difference | (static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i])));
  return difference == 0;
}

/// "[::1]:80" and "localhost:80" without port and brackets.
std::string name_in(const std::string& host_header) {
  std::string name = host_header;
  if (name.starts_with('[')) {
    const auto end = name.find(']');
    return end == std::string::npos ? std::string() : name.substr(1, end - 1);
  }
  name = name.substr(0, name.find(':'));
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  return name;
}

std::string cookie_in(const http_request& request, const std::string& name) {
  const std::string* header = request.header("cookie");
  if (header == nullptr) return {};
  std::string_view rest = *header;
  while (!rest.empty()) {
    std::string_view pair = rest.substr(0, rest.find(';'));
    rest.remove_prefix(std::min(rest.size(), pair.size() + 1));
    while (pair.starts_with(' ')) pair.remove_prefix(1);
    if (pair.size() > name.size() && pair.starts_with(name) && pair[name.size()] == '=')
      return std::string(pair.substr(name.size() + 1));
  }
  return {};
}

http_response refusal(int status, std::string why) {
  http_response result;
  result.status = status;
  result.body = std::move(why) + "\n";
  return result;
}

}  // namespace

guard::guard(std::string host, std::uint16_t port, std::string token)
    : host_(name_in(host)), token_(std::move(token)), cookie_(fmt::format("heapwright_{}", port)) {
  if (host_.empty()) host_ = std::move(host);
}

bool guard::knows_host(const std::string& header) const {
  const std::string name = name_in(header);
  if (name == "localhost" || name == host_) return true;
  return is_loopback(name);
}

bool guard::has_token(const http_request& request) const {
  if (token_.empty()) return true;
  const std::string* header = request.header("authorization");
  if (header != nullptr) return is_same(*header, "Bearer " + token_);
  const std::string* parameter = request.parameter("token");
  if (parameter != nullptr) return is_same(*parameter, token_);
  return is_same(cookie_in(request, cookie_), token_);
}

std::optional<http_response> guard::objection(const http_request& request) const {
  const std::string& host = *request.header("host");
  if (token_.empty() && !knows_host(host)) return refusal(403, "This server does not go by that name.");

  const std::string* origin = request.header("origin");
  if (origin != nullptr && *origin != "http://" + host && *origin != "https://" + host)
    return refusal(403, "Asked for by a page of another site.");
  const std::string* site = request.header("sec-fetch-site");
  const bool is_foreign = site != nullptr && (*site == "cross-site" || *site == "same-site");
  if (is_foreign && (request.path != "/" || request.method == "POST"))
    return refusal(403, "Asked for by a page of another site.");

  if (!has_token(request)) {
    http_response result = refusal(401, "A token is needed: the address that `heapwright live` printed has it.");
    result.headers.emplace_back("WWW-Authenticate", "Bearer realm=\"heapwright\"");
    return result;
  }
  if (request.path == "/" && request.parameter("token") != nullptr && !token_.empty()) {
    // The address is then without it, in the history and wherever it is copied to.
    http_response result = refusal(303, "");
    result.headers.emplace_back("Location", "/");
    result.headers.emplace_back("Set-Cookie", fmt::format("{}={}; HttpOnly; SameSite=Strict; Path=/", cookie_, token_));
    return result;
  }
  return std::nullopt;
}

bool is_loopback(const std::string& host) {
  if (host == "localhost") return true;
  in_addr four{};
  if (inet_pton(AF_INET, host.c_str(), &four) == 1) return ntohl(four.s_addr) >> 24 == 127;
  in6_addr six{};
  return inet_pton(AF_INET6, host.c_str(), &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six);
}

std::string random_token() {
  std::array<unsigned char, 20> bytes;
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    throw std::runtime_error("the system gives no random numbers for a token");
  return fmt::format("{:02x}", fmt::join(bytes, ""));
}

bool is_good_token(const std::string& token) {
  const auto allowed = [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.' || c == '~';
  };
  return token.size() >= 12 && token.size() <= 256 && std::all_of(token.begin(), token.end(), allowed);
}

}  // namespace heapwright::tool
