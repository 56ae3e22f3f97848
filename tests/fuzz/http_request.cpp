// libFuzzer: the input is what a connection sends. A request that is taken is within the limits,
// and what more arrives behind bytes that were judged already does not change the judgement: the
// server looks at them again with each packet.
#include "http_request.hpp"

#include <algorithm>

#include "scratch_file.hpp"

using namespace heapwright::tool;
using heapwright::fuzzing::require;

namespace {

void check(const http_parse& parsed, std::size_t received) {
  require(parsed.refused == 0 || (parsed.refused >= 400 && parsed.refused < 500));
  require(parsed.consumed <= received && (parsed.refused == 0 || parsed.consumed == 0));
  const http_request& request = parsed.request;
  require(request.headers.size() <= http_limits::headers && request.query.size() <= http_limits::parameters);
  require(request.body.size() <= http_limits::body_bytes && request.path.size() <= http_limits::target_bytes);
  if (parsed.consumed == 0) return;
  require(request.method == "GET" || request.method == "HEAD" || request.method == "POST");
  require(request.path.starts_with('/') && request.path.find('\0') == std::string::npos);
  require(request.header("host") != nullptr);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t length) {
  const std::string_view all(reinterpret_cast<const char*>(data), length);
  const http_parse whole = parse_request(all);
  check(whole, length);
  for (const std::size_t arrived : {length / 2, length - std::min<std::size_t>(length, 1), whole.consumed}) {
    const http_parse part = parse_request(all.substr(0, arrived));
    check(part, arrived);
    if (part.refused != 0) require(whole.refused == part.refused);
    if (part.consumed != 0) require(whole.consumed == part.consumed && whole.request.body == part.request.body);
  }
  return 0;
}
