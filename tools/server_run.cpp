// The object `served_run` is one run; its methods are the states.
#include "server_run.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "descriptor.hpp"
#include "driver_process.hpp"
#include "failure.hpp"
#include "line_search.hpp"
#include "measured_tree.hpp"

namespace heapwright::tool {
namespace {

/// `own` is the same address with port 0. A socket that connects to its own port, which can happen
/// where nothing listens, would be taken for an answer; so the client has its port before.
template <class Address>
bool accepts(const Address& server, Address own, in_port_t Address::*port) {
  const auto* const address = reinterpret_cast<const sockaddr*>(&server);
  auto* const own_address = reinterpret_cast<sockaddr*>(&own);
  socklen_t size = sizeof server;
  const descriptor client(socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!client || bind(client.get(), own_address, size) != 0 || getsockname(client.get(), own_address, &size) != 0 ||
      own.*port == server.*port)
    return false;
  if (connect(client.get(), address, size) == 0) return true;
  if (errno != EINPROGRESS) return false;
  pollfd connected{client.get(), POLLOUT, 0};
  int error = 0;
  socklen_t error_size = sizeof error;
  return poll(&connected, 1, 100) == 1 && getsockopt(client.get(), SOL_SOCKET, SO_ERROR, &error, &error_size) == 0 &&
         error == 0;
}

/// Whether a process accepts connections there, on either address of loopback.
bool answers(int port) {
  sockaddr_in v4{}, own_v4{};
  v4.sin_family = AF_INET;
  v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  own_v4 = v4;
  v4.sin_port = htons(static_cast<in_port_t>(port));
  sockaddr_in6 v6{}, own_v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_addr = in6addr_loopback;
  own_v6 = v6;
  v6.sin6_port = v4.sin_port;
  return accepts(v4, own_v4, &sockaddr_in::sin_port) || accepts(v6, own_v6, &sockaddr_in6::sin6_port);
}

/// What a file that is being written has had since the last question, with the line that was not
/// complete then.
class growing_text {
 public:
  explicit growing_text(const scratch_file& file) : file_(file.reopen()) {}

  bool has_line(const std::regex& pattern) {
    char buffer[65536];
    for (ssize_t n = 0; (n = read(file_.get(), buffer, sizeof buffer)) > 0;) {
      unread_.append(buffer, static_cast<std::size_t>(n));
      if (!find_line(unread_, pattern).empty()) return true;
      unread_.erase(0, unread_.rfind('\n') + 1);
    }
    return false;
  }

 private:
  descriptor file_;
  std::string unread_;
};

/// For the end of a message.
std::string last_lines(const scratch_file& output, const scratch_file& errors) {
  std::string text;
  for (const auto& [name, file] : {std::pair{"stderr", &errors}, std::pair{"stdout", &output}})
    if (const std::string tail = file->tail(3); !tail.empty())
      text += fmt::format("; the last lines of its {}: {}", name, tail);
  return text.empty() ? "; it printed nothing" : text;
}

/// For processes of the server that serve one client, and end after it.
constexpr double settling_limit_seconds = 2;

class served_run {
 public:
  served_run(const job& server, const server_plan& plan, const awaited_signals& signals)
      : plan_(plan), signals_(signals), tree_(server, signals) {}

  server_result go() {
    server_result result;
    measurement driven{};
    try {
      result.trouble = wait_until_ready();
      if (result.trouble.empty()) result.trouble = drive(driven);
      // A server that crashed at the driver's end takes a moment to be gone.
      if (result.trouble.empty()) tree_.watch(now() + 0.02);
      ended_before_ = tree_.has_ended();
      end();
    } catch (const interrupted&) {
      end();
      throw;
    }
    result.was_killed = !tree_.has_ended();
    result.run = tree_.finish();
    if (result.trouble.empty() && !result.was_killed) result.trouble = bad_end(result.run);
    result.run.figures.wall_seconds = driven.wall_seconds;
    result.run.figures.steady_rss = driven.steady_rss;
    result.run.heap_at_end = std::move(steady_heap_);
    result.run.figures.driver_figures = std::move(driven.driver_figures);
    return result;
  }

 private:
  // Each state returns what has gone wrong, or nothing.

  std::string wait_until_ready() {
    growing_text output(tree_.result().output), errors(tree_.result().errors);
    bool is_ready = false;
    tree_.watch(now() + plan_.ready.limit_seconds, [&] {
      is_ready = plan_.ready.port != 0 ? answers(plan_.ready.port)
                                       : output.has_line(plan_.ready.pattern) || errors.has_line(plan_.ready.pattern);
      return is_ready;
    });
    if (tree_.has_ended()) return early_end("before it was ready");
    if (is_ready) return {};
    const std::string missing = plan_.ready.port != 0
                                    ? fmt::format("nothing answers on port {} of loopback", plan_.ready.port)
                                    : fmt::format("it printed no line that matches {}", plan_.ready.line);
    return fmt::format("the server was not ready within {:g} s: {}{}", plan_.ready.limit_seconds, missing,
                       server_said());
  }

  std::string drive(measurement& driven) {
    const driver_process driver(plan_.driver, signals_);
    tree_.set_aside(driver.id());
    const auto driver_has_ended = [&] { return tree_.aside_has_ended(); };
    try {
      tree_.watch(plan_.driver_limit_seconds > 0 ? now() + plan_.driver_limit_seconds : never, driver_has_ended);
    } catch (const interrupted&) {
      driver.end();
      throw;
    }
    const std::string driver_said = last_lines(driver.output(), driver.errors());
    if (!driver_has_ended()) {
      driver.end();
      if (tree_.has_ended()) return early_end("while the driver ran");
      return fmt::format("the driver had not ended after {:g} s{}", plan_.driver_limit_seconds, driver_said);
    }
    if (driver.wait_status() != 0) {
      // A driver may learn of the server's end before this process does.
      tree_.watch(now() + 0.3);
      if (tree_.has_ended()) return early_end("while the driver ran");
      return fmt::format("the driver {}{}", describe_status(driver.wait_status()), driver_said);
    }
    if (tree_.has_ended()) return early_end("while the driver ran");
    driven.steady_rss = tree_.settle(now() + settling_limit_seconds);
    if (!tree_.has_ended())
      driven.steady_rss = tree_.resident_at_end();
    else if (driven.steady_rss == 0)
      return early_end("as the driver ended");
    steady_heap_ = tree_.result().heap_at_end;
    driven.wall_seconds = driver.wall_seconds();
    const std::string printed = driver.output().content();
    for (const driver_figure& figure : plan_.figures) {
      try {
        driven.driver_figures.push_back(figure.read_from(printed));
      } catch (const no_such_figure& missing) {
        return fmt::format("the figure {} was not found: {}{}", figure.name(), missing.what(), driver_said);
      }
    }
    return {};
  }

  void end() {
    tree_.ask_to_end();
    tree_.watch(now() + plan_.end_limit_seconds);
  }

  /// A server has ended that should not have. One that goes into the background has left others.
  [[nodiscard]] std::string early_end(const char* when) {
    const int status = tree_.result().wait_status;
    if (status == 0 && !tree_.members().empty())
      return fmt::format(
          "the server went into the background {}: its first process exited with status 0, another one goes on; "
          "start it so that it stays in the foreground{}",
          when, server_said());
    return fmt::format("the server {} {}{}", describe_status(status), when, server_said());
  }

  /// Servers have exit codes of their own for SIGTERM. Another signal is a crash, which may have
  /// come before SIGTERM was sent and be seen after.
  [[nodiscard]] std::string bad_end(const run_result& run) const {
    if (!WIFSIGNALED(run.wait_status) || WTERMSIG(run.wait_status) == SIGTERM) return {};
    return fmt::format("the server {} as the driver ended{}{}", describe_status(run.wait_status),
                       ended_before_ ? "" : ", or when SIGTERM asked it to end", last_lines(run.output, run.errors));
  }

  [[nodiscard]] std::string server_said() const { return last_lines(tree_.result().output, tree_.result().errors); }

  const server_plan& plan_;
  const awaited_signals& signals_;
  measured_tree tree_;
  bool ended_before_ = false;  ///< before SIGTERM was sent
  std::optional<recipe_evidence> steady_heap_;
};

}  // namespace

server_result run_server(const job& server, const server_plan& plan, const awaited_signals& signals) {
  if (plan.ready.port != 0 && answers(plan.ready.port))
    throw failure(exit_code::bad_input,
                  fmt::format("a process answers on port {} of loopback before the server is started, and would be "
                              "measured in its place; end that process, or choose another port",
                              plan.ready.port));
  return served_run(server, plan, signals).go();
}

}  // namespace heapwright::tool
