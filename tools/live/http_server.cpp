// A connection is in one of these states:
//   reading    bytes come; with a whole request -> answering, with a bad one -> writing, and it is
//              closed behind the refusal
//   answering  a worker has the request; nothing is read meanwhile
//   writing    the answer goes out; then -> reading, or closed
//   streaming  as writing, but each interval a worker makes the next piece; a piece is asked for
//              only when the last one has gone out
// Each state but answering has a deadline. A connection is known by a number that is never used
// again: a worker's answer for one that was closed meanwhile finds nobody.
#include "http_server.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <stdexcept>
#include <thread>

#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "descriptor.hpp"

namespace heapwright::tool {
namespace {

using steady = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr auto request_time = 10s;  ///< from the first byte to the last
constexpr auto idle_time = 60s;     ///< between requests
constexpr auto write_time = 20s;    ///< without any byte going out
constexpr unsigned workers = 3;

const char* reason(int status) {
  switch (status) {
    case 200: return "OK";
    case 204: return "No Content";
    case 303: return "See Other";
    case 400: return "Bad Request";
    case 401: return "Unauthorized";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 408: return "Request Timeout";
    case 409: return "Conflict";
    case 411: return "Length Required";
    case 413: return "Content Too Large";
    case 414: return "URI Too Long";
    case 415: return "Unsupported Media Type";
    case 417: return "Expectation Failed";
    case 431: return "Request Header Fields Too Large";
    case 503: return "Service Unavailable";
    default: return "Internal Server Error";
  }
}

http_response refusal(int status) {
  http_response result;
  result.status = status;
  result.body = fmt::format("{} {}\n", status, reason(status));
  if (status == 405) result.headers.emplace_back("Allow", "GET, HEAD, POST");
  return result;
}

std::string head_of(const http_response& answer, bool keep_alive) {
  std::string head = fmt::format("HTTP/1.1 {} {}\r\nContent-Type: {}\r\nConnection: {}\r\n", answer.status,
                                 reason(answer.status), answer.type, keep_alive ? "keep-alive" : "close");
  if (!answer.next) head += fmt::format("Content-Length: {}\r\n", answer.body.size());
  // What holds for every answer, refusals too. A page may bring its own policy.
  head +=
      "X-Content-Type-Options: nosniff\r\nX-Frame-Options: DENY\r\nReferrer-Policy: no-referrer\r\n"
      "Cross-Origin-Resource-Policy: same-origin\r\nCross-Origin-Opener-Policy: same-origin\r\n";
  bool has_policy = false, has_cache = false;
  for (const auto& [name, value] : answer.headers) {
    has_policy |= name == "Content-Security-Policy";
    has_cache |= name == "Cache-Control";
    head += fmt::format("{}: {}\r\n", name, value);
  }
  if (!has_policy) head += "Content-Security-Policy: default-src 'none'; frame-ancestors 'none'\r\n";
  if (!has_cache) head += "Cache-Control: no-store\r\n";
  return head + "\r\n";
}

struct connection {
  enum class phase { reading, answering, writing, streaming };

  descriptor socket;
  phase now = phase::reading;
  std::string in;
  std::string out;
  std::size_t sent = 0;
  bool keep_alive = true;
  bool is_head = false;
  bool is_making = false;  ///< streaming: a worker makes the next piece
  steady::time_point deadline;
  steady::time_point next_at;  ///< streaming: when the next piece is due
  std::chrono::milliseconds every{0};
  std::function<std::string()> next;

  [[nodiscard]] bool has_output() const noexcept { return sent < out.size(); }
};

}  // namespace

class http_server::loop {
 public:
  loop(const std::string& host, std::uint16_t port) : wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    listen_on(host, port);
  }

  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }

  void stop() noexcept {
    stopping_ = true;
    wake();
  }

  void run(const handler& answer) {
    answer_ = &answer;
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < workers; ++i) threads.emplace_back([this] { work(); });
    while (!stopping_) step();
    {
      const std::lock_guard hold(mutex_);
      jobs_.clear();
      is_over_ = true;
    }
    has_job_.notify_all();
    for (std::thread& thread : threads) thread.join();
    connections_.clear();
  }

 private:
  struct job {
    std::uint64_t who;
    http_request request;
    std::function<std::string()> next;  ///< set: makes the next piece of a stream, and the request is empty
  };
  struct done {
    std::uint64_t who;
    http_response answer;
    bool is_piece = false;
  };

  void listen_on(const std::string& host, std::uint16_t port) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
    addrinfo* found = nullptr;
    if (const int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found); error != 0)
      throw std::runtime_error(fmt::format("{} is no address to listen on: {}", host, gai_strerror(error)));
    const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> list(found, &freeaddrinfo);
    int error = 0;
    for (const addrinfo* a = found; a != nullptr; a = a->ai_next) {
      descriptor fd(socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
      const int yes = 1;
      setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
      if (bind(fd.get(), a->ai_addr, a->ai_addrlen) == 0 && listen(fd.get(), 64) == 0) {
        sockaddr_storage address{};
        socklen_t length = sizeof address;
        getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &length);
        port_ = ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                                                    : reinterpret_cast<const sockaddr_in&>(address).sin_port);
        listener_ = std::move(fd);
        return;
      }
      error = errno;
    }
    throw std::runtime_error(fmt::format("cannot listen on {} port {}: {}", host, port, std::strerror(error)));
  }

  void wake() noexcept {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = write(wake_.get(), &one, sizeof one);
  }

  // --- workers

  void work() {
    for (;;) {
      job next;
      {
        std::unique_lock hold(mutex_);
        has_job_.wait(hold, [&] { return is_over_ || !jobs_.empty(); });
        if (is_over_) return;
        next = std::move(jobs_.front());
        jobs_.pop_front();
      }
      done result = carry_out(next);
      {
        const std::lock_guard hold(mutex_);
        results_.push_back(std::move(result));
      }
      wake();
    }
  }

  done carry_out(const job& next) const noexcept {
    done result{next.who, {}, static_cast<bool>(next.next)};
    try {
      if (result.is_piece)
        result.answer.body = next.next();
      else
        result.answer = (*answer_)(next.request);
    } catch (const std::exception& trouble) {
      result.answer = {};
      result.answer.status = 500;
      if (!result.is_piece) result.answer.body = fmt::format("{}\n", trouble.what());
    }
    return result;
  }

  void give_to_worker(job next) {
    {
      const std::lock_guard hold(mutex_);
      jobs_.push_back(std::move(next));
    }
    has_job_.notify_one();
  }

  // --- the loop

  void step() {
    std::vector<pollfd> polled{{wake_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
    std::vector<std::uint64_t> who{0, 0};
    auto wake_at = steady::now() + 1h;
    for (const auto& [number, c] : connections_) {
      // A stream is watched for its end: what its viewer sends is thrown away.
      short events = c.now == connection::phase::reading || c.now == connection::phase::streaming ? POLLIN : 0;
      if (c.has_output()) events |= POLLOUT;
      polled.push_back({c.socket.get(), events, 0});
      who.push_back(number);
      if (c.now == connection::phase::streaming && !c.has_output()) {
        if (!c.is_making) wake_at = std::min(wake_at, c.next_at);
      } else if (c.now != connection::phase::answering) {
        wake_at = std::min(wake_at, c.deadline);
      }
    }
    const auto wait = std::chrono::ceil<std::chrono::milliseconds>(wake_at - steady::now()).count();
    poll(polled.data(), polled.size(), static_cast<int>(std::clamp<std::int64_t>(wait, 0, 3'600'000)));
    if (stopping_) return;

    if (polled[0].revents != 0) take_results();
    for (std::size_t i = 2; i < polled.size(); ++i) {
      const auto found = connections_.find(who[i]);
      if (found == connections_.end() || polled[i].revents == 0) continue;
      if (!serve(found->first, found->second, polled[i].revents)) connections_.erase(found);
    }
    if (polled[1].revents != 0) accept_all();
    look_at_clock();
  }

  void accept_all() {
    for (int i = 0; i < 16; ++i) {
      descriptor fd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (fd.get() < 0) {
        // Out of descriptors: the connection stays in the kernel's queue, and poll would report it
        // without end.
        if (errno == EMFILE || errno == ENFILE) std::this_thread::sleep_for(100ms);
        return;
      }
      if (connections_.size() >= max_connections && !drop_an_idle_one()) {
        http_response full = refusal(503);
        const std::string text = head_of(full, false) + full.body;
        [[maybe_unused]] const auto written = send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL);
        continue;
      }
      const int yes = 1;
      setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
      connection& c = connections_[++last_number_];
      c.socket = std::move(fd);
      c.deadline = steady::now() + request_time;
    }
  }

  /// The one that would be closed next anyway.
  bool drop_an_idle_one() {
    auto oldest = connections_.end();
    for (auto i = connections_.begin(); i != connections_.end(); ++i) {
      if (i->second.now != connection::phase::reading || !i->second.in.empty()) continue;
      if (oldest == connections_.end() || i->second.deadline < oldest->second.deadline) oldest = i;
    }
    if (oldest == connections_.end()) return false;
    connections_.erase(oldest);
    return true;
  }

  /// False: it is to be closed.
  bool serve(std::uint64_t number, connection& c, short events) {
    if ((events & (POLLERR | POLLNVAL)) != 0) return false;
    if ((events & POLLOUT) != 0 && !flush(number, c)) return false;
    if ((events & (POLLIN | POLLHUP)) == 0) return true;
    std::array<char, 16384> buffer;
    const auto got = recv(c.socket.get(), buffer.data(), buffer.size(), 0);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) return false;
    if (got < 0 || c.now == connection::phase::streaming) return true;
    if (c.in.empty()) c.deadline = steady::now() + request_time;
    c.in.append(buffer.data(), static_cast<std::size_t>(got));
    return c.now != connection::phase::reading || take_request(number, c);
  }

  bool take_request(std::uint64_t number, connection& c) {
    http_parse parse = parse_request(c.in);
    if (parse.refused != 0) {
      c.keep_alive = false;
      return begin_answer(number, c, refusal(parse.refused));
    }
    if (parse.consumed == 0) return true;
    c.in.erase(0, parse.consumed);
    c.keep_alive = parse.request.keep_alive;
    c.is_head = parse.request.method == "HEAD";
    c.now = connection::phase::answering;
    give_to_worker({number, std::move(parse.request), {}});
    return true;
  }

  bool begin_answer(std::uint64_t number, connection& c, http_response answer) {
    if (answer.next) {
      const auto streams = std::count_if(connections_.begin(), connections_.end(), [](const auto& entry) {
        return entry.second.now == connection::phase::streaming;
      });
      if (static_cast<std::size_t>(streams) >= max_streams) answer = refusal(503);
    }
    const bool is_stream = answer.next && !c.is_head;
    c.keep_alive = c.keep_alive && !answer.next;
    c.out = head_of(answer, c.keep_alive);
    if (!c.is_head) c.out += answer.body;
    c.sent = 0;
    c.deadline = steady::now() + write_time;
    c.now = is_stream ? connection::phase::streaming : connection::phase::writing;
    if (is_stream) {
      c.every = answer.every;
      c.next = std::move(answer.next);
      c.next_at = steady::now() + c.every;
    }
    return flush(number, c);
  }

  bool flush(std::uint64_t number, connection& c) {
    while (c.has_output()) {
      const auto count = send(c.socket.get(), c.out.data() + c.sent, c.out.size() - c.sent, MSG_NOSIGNAL);
      if (count < 0) return errno == EAGAIN || errno == EINTR;
      c.sent += static_cast<std::size_t>(count);
      c.deadline = steady::now() + write_time;
    }
    c.out.clear();
    c.sent = 0;
    if (c.now != connection::phase::writing) return true;
    if (!c.keep_alive) {
      // What was not read yet would make the kernel reset the connection, and the refusal would be
      // lost on its way.
      shutdown(c.socket.get(), SHUT_WR);
      std::array<char, 16384> rest;
      for (int i = 0; i < 16 && recv(c.socket.get(), rest.data(), rest.size(), 0) > 0; ++i) continue;
      return false;
    }
    c.now = connection::phase::reading;
    c.deadline = steady::now() + idle_time;
    return c.in.empty() || take_request(number, c);
  }

  void take_results() {
    std::uint64_t count = 0;
    [[maybe_unused]] const auto got = read(wake_.get(), &count, sizeof count);
    std::vector<done> results;
    {
      const std::lock_guard hold(mutex_);
      results.swap(results_);
    }
    for (done& result : results) {
      const auto found = connections_.find(result.who);
      if (found == connections_.end()) continue;
      connection& c = found->second;
      bool is_well = true;
      if (result.is_piece) {
        c.is_making = false;
        c.out = std::move(result.answer.body);
        c.deadline = steady::now() + write_time;
        is_well = result.answer.status == 200 && flush(found->first, c);
      } else {
        is_well = begin_answer(found->first, c, std::move(result.answer));
      }
      if (!is_well) connections_.erase(found);
    }
  }

  void look_at_clock() {
    const auto now = steady::now();
    for (auto i = connections_.begin(); i != connections_.end();) {
      connection& c = i->second;
      const bool is_waiting = c.now == connection::phase::streaming && !c.has_output();
      if (is_waiting && !c.is_making && now >= c.next_at) {
        c.is_making = true;
        c.next_at = std::max(c.next_at + c.every, now);
        give_to_worker({i->first, {}, c.next});
      }
      const bool is_late = !is_waiting && c.now != connection::phase::answering && now >= c.deadline;
      if (!is_late) {
        ++i;
      } else if (c.now == connection::phase::reading && !c.in.empty()) {
        c.in.clear();
        c.keep_alive = false;
        i = begin_answer(i->first, c, refusal(408)) ? std::next(i) : connections_.erase(i);
      } else {
        i = connections_.erase(i);
      }
    }
  }

  descriptor listener_;
  descriptor wake_;
  std::uint16_t port_ = 0;
  std::atomic<bool> stopping_ = false;
  const handler* answer_ = nullptr;
  std::map<std::uint64_t, connection> connections_;  ///< the loop's own
  std::uint64_t last_number_ = 0;

  std::mutex mutex_;  ///< of what follows
  std::condition_variable has_job_;
  std::deque<job> jobs_;  ///< no more than there are connections
  std::vector<done> results_;
  bool is_over_ = false;
};

http_server::http_server(const std::string& host, std::uint16_t port) : loop_(std::make_unique<loop>(host, port)) {}
http_server::~http_server() = default;
std::uint16_t http_server::port() const noexcept { return loop_->port(); }
void http_server::run(const handler& answer) { loop_->run(answer); }
void http_server::stop() noexcept { loop_->stop(); }

}  // namespace heapwright::tool
