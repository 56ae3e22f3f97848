// What is taken for a request, and what is refused with which status.
#include "http_request.hpp"

#include <gtest/gtest.h>

namespace heapwright::tool {
namespace {

constexpr const char* host = "Host: localhost\r\n\r\n";

int status_of(const std::string& text) { return parse_request(text).refused; }

TEST(http_request, takes_what_a_browser_sends) {
  const std::string text =
      "GET /api/stacks?value=live&since=a%20b+c HTTP/1.1\r\nHost: localhost:1\r\nAccept: */*\r\n\r\nnext";
  const http_parse parse = parse_request(text);
  ASSERT_EQ(parse.refused, 0);
  EXPECT_EQ(parse.consumed, text.size() - 4);
  EXPECT_EQ(parse.request.path, "/api/stacks");
  EXPECT_EQ(*parse.request.parameter("since"), "a b c");
  EXPECT_EQ(*parse.request.header("host"), "localhost:1");
  EXPECT_TRUE(parse.request.keep_alive);
}

TEST(http_request, waits_for_every_prefix_and_then_takes_the_whole) {
  const std::string text = "POST /api/control HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\n12345";
  for (std::size_t i = 0; i < text.size(); ++i) {
    const http_parse parse = parse_request(text.substr(0, i));
    EXPECT_EQ(parse.refused, 0) << i;
    EXPECT_EQ(parse.consumed, 0U) << i;
  }
  EXPECT_EQ(parse_request(text).request.body, "12345");
}

TEST(http_request, refuses_what_is_not_plain) {
  EXPECT_EQ(status_of(std::string("DELETE / HTTP/1.1\r\n") + host), 405);
  EXPECT_EQ(status_of(std::string("GET / HTTP/2.0\r\n") + host), 400);
  EXPECT_EQ(status_of(std::string("GET http://a/ HTTP/1.1\r\n") + host), 400);
  EXPECT_EQ(status_of(std::string("GET /%zz HTTP/1.1\r\n") + host), 400);
  EXPECT_EQ(status_of(std::string("GET /%00 HTTP/1.1\r\n") + host), 400);
  EXPECT_EQ(status_of(std::string("GET /?a=1&a=2 HTTP/1.1\r\n") + host), 400);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\n\r\n"), 400);
  EXPECT_EQ(status_of(std::string("GET / HTTP/1.1\r\nHost: a\r\n") + host), 400);
  EXPECT_EQ(status_of(std::string("GET / HTTP/1.1\r\n folded: 1\r\n") + host), 400);
  EXPECT_EQ(status_of("GET / HTTP/1.1\nHost: localhost\n\n"), 400);
  EXPECT_EQ(status_of("\x16\x03\x01\x02"), 400);
}

TEST(http_request, bounds_every_length) {
  EXPECT_EQ(status_of("GET /" + std::string(5000, 'a') + " HTTP/1.1\r\n" + host), 414);
  EXPECT_EQ(status_of("GET " + std::string(http_limits::head_bytes, 'a')), 414);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\na: " + std::string(http_limits::head_bytes, 'a')), 431);
  std::string many = "GET / HTTP/1.1\r\n";
  for (int i = 0; i < 100; ++i) many += "a: b\r\n";
  EXPECT_EQ(status_of(many + host), 431);
  const std::string post = "POST / HTTP/1.1\r\n";
  EXPECT_EQ(status_of(post + host), 411);
  EXPECT_EQ(status_of(post + "Transfer-Encoding: chunked\r\n" + host), 411);
  EXPECT_EQ(status_of(post + "Content-Length: 99999999\r\n" + host), 413);
  EXPECT_EQ(status_of(post + "Content-Length: 99999999999999999999999\r\n" + host), 413);
  EXPECT_EQ(status_of(post + "Content-Length: -1\r\n" + host), 400);
  EXPECT_EQ(status_of(post + "Content-Length: 1\r\nContent-Length: 2\r\n" + host), 400);
}

}  // namespace
}  // namespace heapwright::tool
