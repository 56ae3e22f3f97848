// The functions below check what they are given against this macro's types otherwise, under names
// that are not those of a library that was loaded.
#define CURL_DISABLE_TYPECHECK
#include "http_client.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>

#include <curl/curl.h>
#include <dlfcn.h>

#include "failure.hpp"

namespace heapwright::tool {

struct http_client::curl_library {
  void* library = nullptr;
  decltype(&curl_global_init) global_init = nullptr;
  decltype(&curl_easy_init) init = nullptr;
  decltype(&curl_easy_cleanup) cleanup = nullptr;
  decltype(&curl_easy_reset) reset = nullptr;
  decltype(&curl_easy_setopt) set = nullptr;
  decltype(&curl_easy_perform) perform = nullptr;
  decltype(&curl_easy_getinfo) get = nullptr;
  decltype(&curl_easy_strerror) describe = nullptr;
  decltype(&curl_slist_append) append = nullptr;
  decltype(&curl_slist_free_all) free_all = nullptr;
  decltype(&curl_url) url = nullptr;
  decltype(&curl_url_set) url_set = nullptr;
  decltype(&curl_url_cleanup) url_cleanup = nullptr;
  CURL* connection = nullptr;  ///< kept from request to request

  template <class Function>
  void find(Function& function, const char* name) const {
    function = reinterpret_cast<Function>(dlsym(library, name));
    if (function == nullptr) throw failure(exit_code::bad_input, std::string("--push: this libcurl has no ") + name);
  }

  ~curl_library() {
    if (connection != nullptr) cleanup(connection);
    // It is not unloaded: what it has registered to be done at exit would be gone.
  }
};

namespace {

constexpr std::size_t most_of_reply = 64 * 1024;

std::size_t take_reply(const char* bytes, std::size_t, std::size_t count, void* reply) {
  auto& body = static_cast<http_reply*>(reply)->body;
  body.append(bytes, std::min(count, most_of_reply - body.size()));
  return body.size() < most_of_reply ? count : 0;  // 0 ends the request
}

int ask_whether_to_end(void* goes_on, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return (*static_cast<const std::function<bool()>*>(goes_on))() ? 0 : 1;
}

}  // namespace

http_client::http_client() : curl_(std::make_unique<curl_library>()) {
  curl_library& c = *curl_;
  for (const char* const name : {"libcurl.so.4", "libcurl-gnutls.so.4"})
    if (c.library == nullptr) c.library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (c.library == nullptr)
    throw failure(exit_code::bad_input, "--push needs libcurl, which is not installed (Debian: libcurl4)");
  c.find(c.global_init, "curl_global_init");
  c.find(c.init, "curl_easy_init");
  c.find(c.cleanup, "curl_easy_cleanup");
  c.find(c.reset, "curl_easy_reset");
  c.find(c.set, "curl_easy_setopt");
  c.find(c.perform, "curl_easy_perform");
  c.find(c.get, "curl_easy_getinfo");
  c.find(c.describe, "curl_easy_strerror");
  c.find(c.append, "curl_slist_append");
  c.find(c.free_all, "curl_slist_free_all");
  c.find(c.url, "curl_url");
  c.find(c.url_set, "curl_url_set");
  c.find(c.url_cleanup, "curl_url_cleanup");
  if (c.global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK) c.connection = c.init();
  if (c.connection == nullptr) throw failure(exit_code::bad_input, "--push: libcurl cannot be used");
}

http_client::~http_client() = default;

std::string http_client::complaint(const std::string& url) const {
  CURLU* const parts = curl_->url();
  const CURLUcode code = curl_->url_set(parts, CURLUPART_URL, url.c_str(), CURLU_DISALLOW_USER);
  curl_->url_cleanup(parts);
  switch (code) {
    case CURLUE_OK: return {};
    case CURLUE_USER_NOT_ALLOWED: return "a user and a password are seen by others in ps";
    case CURLUE_BAD_PORT_NUMBER: return "the port is none";
    case CURLUE_UNSUPPORTED_SCHEME: return "this libcurl has no TLS";
    default: return "it is no URL";
  }
}

http_reply http_client::post(const std::string& url, const std::vector<std::string>& headers, const std::string& body,
                             std::chrono::milliseconds at_most, const std::function<bool()>& goes_on) {
  const curl_library& c = *curl_;
  http_reply reply;
  std::array<char, CURL_ERROR_SIZE> trouble{};
  curl_slist* list = nullptr;
  for (const std::string& header : headers) list = c.append(list, header.c_str());
  list = c.append(list, "Expect:");  // the answer to a large body is not waited for before it is sent
  c.reset(c.connection);
  c.set(c.connection, CURLOPT_URL, url.c_str());
  c.set(c.connection, CURLOPT_HTTPHEADER, list);
  c.set(c.connection, CURLOPT_USERAGENT, "heapwright");
  c.set(c.connection, CURLOPT_POST, 1L);
  c.set(c.connection, CURLOPT_POSTFIELDS, body.data());
  c.set(c.connection, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size()));
  c.set(c.connection, CURLOPT_NOSIGNAL, 1L);
  c.set(c.connection, CURLOPT_QUICK_EXIT, 1L);  // does not wait for a name server; older libcurls pass over it
  c.set(c.connection, CURLOPT_TIMEOUT_MS, static_cast<long>(at_most.count()));
  c.set(c.connection, CURLOPT_ERRORBUFFER, trouble.data());
  c.set(c.connection, CURLOPT_WRITEFUNCTION, take_reply);
  c.set(c.connection, CURLOPT_WRITEDATA, &reply);
  c.set(c.connection, CURLOPT_NOPROGRESS, 0L);
  c.set(c.connection, CURLOPT_XFERINFOFUNCTION, ask_whether_to_end);
  c.set(c.connection, CURLOPT_XFERINFODATA, &goes_on);
  // The tool `curl` goes by this variable, the library does not.
  if (const char* const authorities = std::getenv("SSL_CERT_FILE"); authorities != nullptr && *authorities != '\0')
    c.set(c.connection, CURLOPT_CAINFO, authorities);
  const CURLcode code = c.perform(c.connection);
  long status = 0;
  char* location = nullptr;
  c.get(c.connection, CURLINFO_RESPONSE_CODE, &status);
  c.get(c.connection, CURLINFO_REDIRECT_URL, &location);
  if (location != nullptr) reply.location = location;
  c.free_all(list);
  const bool is_cut = code == CURLE_WRITE_ERROR && reply.body.size() == most_of_reply;
  if (code == CURLE_OK || is_cut)
    reply.status = static_cast<int>(status);
  else if (code == CURLE_ABORTED_BY_CALLBACK)
    reply.trouble = "the receiver has not answered in time";
  else
    reply.trouble = trouble[0] != '\0' ? trouble.data() : c.describe(code);
  return reply;
}

}  // namespace heapwright::tool
