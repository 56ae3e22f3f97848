// Serves HTTP to a few viewers of one machine.
//
// One thread owns all connections and never waits for any of them; a few workers make the answers.
// Everything that a sender could make grow is bounded: connections, what each may send and how long
// it may take for that, requests under way, and events waiting for a slow reader (none: it misses
// them). Without viewers nothing happens here: the thread sleeps in poll.
//
// docs/design/0018-live-has-its-own-http-server.md compares it with the HTTP libraries of
// Debian 12.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "http_request.hpp"

namespace heapwright::tool {

struct http_response {
  int status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;

  /// Set: the body is the beginning of a stream of events that never ends, and this makes the next
  /// piece, once in each `every`.
  std::function<std::string()> next;
  std::chrono::milliseconds every{0};
};

class http_server {
 public:
  /// Called by several threads at once. What it throws becomes a 500.
  using handler = std::function<http_response(const http_request&)>;

  static constexpr std::size_t max_connections = 64;
  static constexpr std::size_t max_streams = 24;

  /// Listens from here on. Throws std::runtime_error when the address cannot be had. Port 0: any.
  http_server(const std::string& host, std::uint16_t port);
  ~http_server();

  [[nodiscard]] std::uint16_t port() const noexcept;

  /// Returns after `stop`.
  void run(const handler& answer);

  /// May be called at any time, by any thread and in a signal handler.
  void stop() noexcept;

 private:
  class loop;
  std::unique_ptr<loop> loop_;
};

}  // namespace heapwright::tool
