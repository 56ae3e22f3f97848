// Sends requests to an HTTP server, by libcurl: TLS, proxies and the rest are its work.
//
// libcurl is loaded by the first client, not linked: the command needs libc alone, and starts where
// there is no libcurl.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace heapwright::tool {

struct http_reply {
  int status = 0;        ///< 0: there was none
  std::string trouble;   ///< why there was none
  std::string body;      ///< its beginning
  std::string location;  ///< where a redirect leads, which is not followed
};

/// Of one thread at a time.
class http_client {
 public:
  /// Throws `failure` where there is no libcurl.
  http_client();
  ~http_client();

  /// Why this is no URL; empty: it is one.
  [[nodiscard]] std::string complaint(const std::string& url) const;

  /// `goes_on` is asked about once a second, and often while bytes are sent: false ends the
  /// request. Credentials come in `headers` alone; each is "NAME: VALUE".
  [[nodiscard]] http_reply post(const std::string& url, const std::vector<std::string>& headers,
                                const std::string& body, std::chrono::milliseconds at_most,
                                const std::function<bool()>& goes_on);

 private:
  struct curl_library;
  std::unique_ptr<curl_library> curl_;
};

}  // namespace heapwright::tool
