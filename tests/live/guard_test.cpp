// Who may ask: names, other sites' pages, tokens.
#include "guard.hpp"

#include <gtest/gtest.h>

namespace heapwright::tool {
namespace {

http_request asking(const std::string& host, std::vector<std::pair<std::string, std::string>> headers = {}) {
  http_request request;
  request.method = "GET";
  request.path = "/api/state";
  request.headers = std::move(headers);
  request.headers.emplace_back("host", host);
  return request;
}

int status(const guard& g, const http_request& request) {
  const auto objection = g.objection(request);
  return objection ? objection->status : 0;
}

const std::string token = "0123456789abcdef";

TEST(guard, on_loopback_knows_loopback_names_only) {
  const guard g("127.0.0.1", 80, "");
  for (const char* name : {"localhost", "localhost:80", "LOCALHOST:9", "127.0.0.1", "127.1.2.3:80", "[::1]:80"})
    EXPECT_EQ(status(g, asking(name)), 0) << name;
  for (const char* name :
       {"evil.example", "evil.example:80", "localhost.evil.example", "127.0.0.1.evil.example", "", "[", "10.0.0.1"})
    EXPECT_EQ(status(g, asking(name)), 403) << name;
}

TEST(guard, refuses_pages_of_other_sites) {
  const guard g("127.0.0.1", 80, "");
  EXPECT_EQ(status(g, asking("localhost:80", {{"origin", "http://localhost:80"}})), 0);
  EXPECT_EQ(status(g, asking("localhost:80", {{"origin", "http://evil.example"}})), 403);
  EXPECT_EQ(status(g, asking("localhost:80", {{"origin", "null"}})), 403);
  EXPECT_EQ(status(g, asking("localhost:80", {{"origin", "http://localhost:81"}})), 403);
  EXPECT_EQ(status(g, asking("localhost:80", {{"sec-fetch-site", "cross-site"}})), 403);
  EXPECT_EQ(status(g, asking("localhost:80", {{"sec-fetch-site", "same-origin"}})), 0);
}

TEST(guard, with_a_token_wants_it_in_one_of_three_places) {
  const guard g("0.0.0.0", 80, token);
  EXPECT_EQ(status(g, asking("10.0.0.1:80")), 401);
  EXPECT_EQ(status(g, asking("10.0.0.1:80", {{"authorization", "Bearer " + token}})), 0);
  EXPECT_EQ(status(g, asking("10.0.0.1:80", {{"authorization", "Bearer " + token + "x"}})), 401);
  EXPECT_EQ(status(g, asking("10.0.0.1:80", {{"cookie", "other=1; heapwright_80=" + token}})), 0);
  EXPECT_EQ(status(g, asking("10.0.0.1:80", {{"cookie", "heapwright_80=0123456789abcdeX"}})), 401);
  EXPECT_EQ(status(g, asking("10.0.0.1:80", {{"cookie", "heapwright_81=" + token}})), 401);
  http_request request = asking("10.0.0.1:80");
  request.query = {{"token", token}};
  EXPECT_EQ(status(g, request), 0);
}

TEST(guard, with_the_token_goes_by_any_name) {
  for (const char* host : {"0.0.0.0", "10.0.0.1", "127.0.0.1"}) {
    const guard g(host, 80, token);
    EXPECT_EQ(status(g, asking("other-name.example:80", {{"authorization", "Bearer " + token}})), 0);
    EXPECT_EQ(status(g, asking("other-name.example:80")), 401);
    EXPECT_EQ(status(g, asking("other-name.example:80",
                               {{"authorization", "Bearer " + token}, {"origin", "http://evil.example"}})),
              403);
  }
}

TEST(guard, takes_the_token_out_of_the_pages_address) {
  const guard g("0.0.0.0", 80, token);
  http_request request = asking("10.0.0.1:80");
  request.path = "/";
  request.query = {{"token", token}};
  const auto answer = g.objection(request);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 303);
  EXPECT_EQ(answer->headers[0].second, "/");
  EXPECT_NE(answer->headers[1].second.find("HttpOnly; SameSite=Strict"), std::string::npos);
}

TEST(guard, loopback_is_recognised) {
  EXPECT_TRUE(is_loopback("127.0.0.1") && is_loopback("::1") && is_loopback("localhost") && is_loopback("127.9.9.9"));
  EXPECT_FALSE(is_loopback("0.0.0.0") || is_loopback("::") || is_loopback("10.0.0.1") || is_loopback("example.org"));
  EXPECT_TRUE(is_good_token(random_token()));
  EXPECT_FALSE(is_good_token("short") || is_good_token("0123456789ab\r\nSet-Cookie: x"));
}

}  // namespace
}  // namespace heapwright::tool
