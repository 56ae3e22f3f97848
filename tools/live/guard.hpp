// Who may ask: decided for each request before anything else is looked at.
//
// Dangers on a loopback address are pages of other sites in the user's own browser: one whose name
// was made to point here (DNS rebinding: the Host header has its name) or one that posts here (the
// Origin header has its name). On other addresses anybody may ask, so a token is needed. With a
// token the Host header may have any name: a page of another name has no token.
#pragma once

#include <optional>
#include <string>

#include "http_request.hpp"
#include "http_server.hpp"

namespace heapwright::tool {

class guard {
 public:
  /// `host`: what the server listens on. `token`: empty for none, on loopback only.
  guard(std::string host, std::uint16_t port, std::string token);

  /// What to answer instead, if the request is not to be obeyed, or is the first one with the token
  /// in its address.
  [[nodiscard]] std::optional<http_response> objection(const http_request& request) const;

 private:
  [[nodiscard]] bool knows_host(const std::string& header) const;
  [[nodiscard]] bool has_token(const http_request& request) const;

  std::string host_;
  std::string token_;
  std::string cookie_;  ///< its name; cookies of all ports of a host are one, so it has the port in it
};

/// Whether only this machine can reach what listens there.
[[nodiscard]] bool is_loopback(const std::string& host);

[[nodiscard]] std::string random_token();

/// Can it stand in an address and a cookie as it is, and is it long enough not to be guessed?
[[nodiscard]] bool is_good_token(const std::string& token);

}  // namespace heapwright::tool
