#include "routes.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <cmath>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <stdexcept>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "page.hpp"
#include "profiles.hpp"
#include "snapshot_page.hpp"
#include "views.hpp"

namespace heapwright::tool {
namespace {

using namespace std::chrono_literals;

/// What is wrong with a question; becomes its answer.
class bad_question : public std::runtime_error {
 public:
  bad_question(int status, const std::string& why) : std::runtime_error(why), status_(status) {}
  [[nodiscard]] int status() const noexcept { return status_; }

 private:
  int status_;
};

bad_question wrong(const std::string& why) { return {400, why}; }
bad_question no_process() {
  return {404, "there is no such process here; process=NAME or process=ID takes one that /api/processes lists"};
}

http_response made(std::string type, std::string body) {
  http_response result;
  result.type = std::move(type);
  result.body = std::move(body);
  return result;
}
http_response as_json(std::string body) { return made("application/json", std::move(body)); }

http_response as_file(std::string type, const std::string& name, std::string body) {
  http_response result = made(std::move(type), std::move(body));
  result.headers.emplace_back("Content-Disposition", fmt::format("attachment; filename=\"{}\"", name));
  return result;
}

/// "heapwright-PID-WHAT".
std::string file_name(watched_process& process, const char* what) {
  return fmt::format("heapwright-{}-{}", process.now()->figures.process.process_id, what);
}

http_response as_csv(watched_process& process, const char* what, std::string body) {
  return as_file("text/csv; charset=utf-8", file_name(process, what) + ".csv", std::move(body));
}

void only(const http_request& request, std::initializer_list<std::string_view> known) {
  for (const auto& [name, value] : request.query)
    if (name != "token" && name != "process" && std::find(known.begin(), known.end(), name) == known.end())
      throw wrong(fmt::format("{} knows no parameter {}", request.path, name));
}

template <class Number>
Number number(const http_request& request, std::string_view name, Number otherwise, Number least, Number most) {
  const std::string* text = request.parameter(name);
  if (text == nullptr) return otherwise;
  Number value{};
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc() || end != text->data() + text->size() || !(value >= least && value <= most))
    throw wrong(fmt::format("{} is a number from {} to {}", name, least, most));
  return value;
}

template <class Value>
Value choice(const http_request& request, std::string_view name,
             std::initializer_list<std::pair<std::string_view, Value>> known) {
  const std::string* text = request.parameter(name);
  if (text == nullptr) return known.begin()->second;
  for (const auto& [key, value] : known)
    if (key == *text) return value;
  std::string names;
  for (const auto& [key, value] : known) names += fmt::format("{}{}", names.empty() ? "" : ", ", key);
  throw wrong(fmt::format("{} is one of: {}", name, names));
}

stack_question stack_question_of(const http_request& request, const watched_process& process, std::size_t otherwise,
                                 std::size_t most) {
  stack_question q;
  q.value = choice<stack_value>(request, "value",
                                {{"live", stack_value::live},
                                 {"peak", stack_value::peak},
                                 {"allocated", stack_value::allocated},
                                 {"count", stack_value::count},
                                 {"short", stack_value::short_lived}});
  q.by = choice<frame_detail>(
      request, "by",
      {{"function", frame_detail::function}, {"line", frame_detail::line}, {"package", frame_detail::package}});
  q.from_site = choice<bool>(request, "from", {{"root", false}, {"site", true}});
  q.hides_interpreter = choice<bool>(request, "interpreter", {{"shown", false}, {"hidden", true}});
  q.folds_libraries = choice<bool>(request, "libraries", {{"shown", false}, {"folded", true}});
  if (const std::string* threads = request.parameter("threads")) q.threads = *threads;
  q.most = number<std::size_t>(request, "most", otherwise, 1, most);
  const auto moment = [&](std::string_view name) -> std::shared_ptr<const baseline> {
    const std::string* const mark = request.parameter(name);
    if (mark == nullptr || mark->empty()) return nullptr;
    auto found = process.since(*mark);
    if (!found)
      throw bad_question(404, "of that mark it is not known what was live: it is older than this server, or no mark");
    return found;
  };
  if (const std::string* since = request.parameter("since"); since != nullptr && *since == "other") {
    q.other = process.other();
    if (!q.other) throw bad_question(404, "there is no other run; live --against FILE takes one");
  } else {
    q.since = moment("since");
  }
  q.until = moment("until");
  if (q.until && (!q.since || q.until->at_ns < q.since->at_ns))
    throw wrong("until is the end of a time that begins with since");
  return q;
}

/// The first where none is asked for.
std::string asked_for(const http_request& request) {
  const std::string* const name = request.parameter("process");
  return name == nullptr ? "" : *name;
}

std::shared_ptr<watched_process> asked_process(const http_request& request, watched_family& family) {
  auto process = family.find(asked_for(request));
  if (!process) throw no_process();
  return process;
}

/// Of a process that executes another program it goes on with that.
http_response events(const http_request& request, const shown_run& what) {
  watched_family& family = what.family;
  only(request, {"interval"});
  const auto interval = number<unsigned>(request, "interval", 1000, 100, 60'000);
  const auto event = [&family, name = asked_for(request), process = asked_process(request, family)]() mutable {
    if (const auto now = family.find(name)) process = now;
    return fmt::format("event: state\ndata: {}\n\n", state_view(*process));
  };
  auto first = event;
  http_response result = made("text/event-stream", "retry: 1000\n\n" + first());
  result.next = event;
  result.every = std::chrono::milliseconds(interval);
  return result;
}

/// Of a process that is not there it says so itself.
http_response page(const http_request& request, const shown_run&) {
  only(request, {});
  http_response page = made("text/html; charset=utf-8", std::string(live_page));
  page.headers.emplace_back("Content-Security-Policy", live_page_policy);
  return page;
}

http_response processes(const http_request& request, const shown_run& what) {
  if (request.parameter("process") != nullptr) throw wrong("/api/processes knows no parameter process");
  only(request, {"ended"});
  const bool with_ended_before = choice<bool>(request, "ended", {{"since", false}, {"all", true}});
  return as_json(processes_view(what.family, with_ended_before));
}

/// Of all processes: it may name a site in each.
http_response advice(const http_request& request, const shown_run& what) {
  only(request, {});
  (void)asked_process(request, what.family);
  return as_json(what.advice);
}

http_response of_one(const http_request& request, watched_family& family,
                     http_response (*answer)(const http_request&, watched_process&)) {
  return answer(request, *asked_process(request, family));
}

/// Of all processes, or of the one that is asked for.
http_response metrics(const http_request& request, const shown_run& what) {
  watched_family& family = what.family;
  only(request, {});
  const char* const type = "text/plain; version=0.0.4; charset=utf-8";
  if (request.parameter("process") == nullptr) return made(type, metrics_view(family));
  return made(type, metrics_view(*asked_process(request, family)));
}

/// Of all processes; it opens with the one that is asked for.
http_response snapshot(const http_request& request, const shown_run& what) {
  only(request, {});
  std::optional<std::string> process;
  if (request.parameter("process") != nullptr) process = what.family.name_of_asked(asked_for(request));
  if (request.parameter("process") != nullptr && !process) throw no_process();
  return as_file("text/html; charset=utf-8", "heapwright-snapshot.html", snapshot_page(what, {.process = process}));
}

/// A mark's name is shown as text and kept in 56 bytes.
std::string mark_name(const nlohmann::json& value) {
  if (!value.is_string()) throw wrong("mark is a text");
  const auto& name = value.get_ref<const std::string&>();
  const auto is_control = [](unsigned char c) { return c < 0x20 || c == 0x7f; };
  if (name.empty() || name.size() > 55 || std::any_of(name.begin(), name.end(), is_control))
    throw wrong("mark is a text of 1 to 55 bytes, without control characters");
  return name;
}

http_response done() { return as_json("{\"done\": true}\n"); }

/// {"counting": bool} or {"interval": bytes or "auto"} or {"reset_peak": true} or {"mark": name}:
/// exactly one, so that it is done or not done.
http_response control(const http_request& request, watched_process& process) {
  only(request, {});
  const std::string* type = request.header("content-type");
  if (type == nullptr || !type->starts_with("application/json"))
    throw bad_question(415, "control takes application/json");
  const auto order = nlohmann::json::parse(request.body, nullptr, false);
  if (!order.is_object() || order.size() != 1)
    throw wrong("control takes one of: counting, interval, reset_peak, mark");
  if (!process.may_control())
    throw bad_question(403, "viewers may only look: --read-only says so, or the segment may not be written to");
  if (process.now()->state != life::running) throw bad_question(409, "the program has ended");
  const auto& value = order.begin().value();
  if (const auto& name = order.begin().key(); name == "counting") {
    if (!value.is_boolean()) throw wrong("counting is true or false");
    process.set_counting(value.get<bool>());
  } else if (name == "interval") {
    if (value == "auto") {
      process.adapt_interval();
      return done();
    }
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() > std::uint64_t{1} << 40)
      throw wrong("interval is a number of bytes from 0 to 2^40, or auto");
    if (value == 0 && process.now(false)->figures.process.is_of_samples)
      throw wrong("samples alone are counted: without them there would be no figures");
    process.set_interval(value.get<std::uint64_t>());
  } else if (name == "reset_peak") {
    if (value != true) throw wrong("reset_peak is true");
    process.reset_peak();
  } else if (name == "mark") {
    if (!process.add_mark(mark_name(value))) throw bad_question(409, "there are as many marks as there can be");
  } else {
    throw wrong("control takes one of: counting, interval, reset_peak, mark");
  }
  return done();
}

http_response profile(const http_request& request, watched_process& process, bool is_heap) {
  only(request, {"seconds", "debug", "gc"});
  const auto seconds = number<unsigned>(request, "seconds", 0, 0, 60);
  // A request that waits keeps a worker: one may.
  static std::atomic<bool> is_taken = false;
  if (seconds > 0 && is_taken.exchange(true))
    throw bad_question(409, "another profile over some seconds is being made");
  const std::shared_ptr<void> release(nullptr, [&](void*) {
    if (seconds > 0) is_taken = false;
  });
  return as_file("application/octet-stream", file_name(process, is_heap ? "heap.pb.gz" : "allocs.pb.gz"),
                 pprof_answer(process, is_heap, seconds));
}

struct route {
  std::string_view path;
  std::string_view method;
  http_response (*answer)(const http_request&, watched_process&);
  http_response (*of_all)(const http_request&, const shown_run&) = nullptr;  ///< instead
};

const auto& table() {
  using request = http_request;
  using process = watched_process;
  static constexpr std::array known{
      route{"/", "GET", nullptr, page},
      route{"/api/state", "GET",
            [](const request& r, process& p) {
              only(r, {});
              return as_json(state_view(p));
            }},
      route{"/api/cells", "GET",
            [](const request& r, process& p) {
              only(r, {});
              return as_json(cells_view(p));
            }},
      route{"/api/events", "GET", nullptr, events},
      route{"/api/processes", "GET", nullptr, processes},
      route{"/api/advice", "GET", nullptr, advice},
      route{"/api/history", "GET",
            [](const request& r, process& p) {
              only(r, {"since", "most"});
              return as_json(history_view(p, number<double>(r, "since", 0, 0, 1e12),
                                          number<std::size_t>(r, "most", 4000, 2, 100'000)));
            }},
      route{"/api/stacks", "GET",
            [](const request& r, process& p) {
              only(r, {"value", "since", "until", "by", "from", "interpreter", "libraries", "threads", "most"});
              return as_json(tree_view(p, stack_question_of(r, p, 20'000, 100'000)));
            }},
      route{"/api/sites", "GET",
            [](const request& r, process& p) {
              only(r, {"value", "since", "until", "threads", "most"});
              return as_json(sites_view(p, stack_question_of(r, p, 500, 5'000)));
            }},
      route{"/api/site_history", "GET",
            [](const request& r, process& p) {
              only(r, {"threads", "most"});
              const std::string* const threads = r.parameter("threads");
              return as_json(
                  site_history_view(p, threads == nullptr ? "" : *threads, number<std::size_t>(r, "most", 10, 1, 100)));
            }},
      route{"/api/leaks", "GET",
            [](const request& r, process& p) {
              only(r, {"most"});
              return as_json(leaks_view(p, number<std::size_t>(r, "most", 200, 1, 2'000)));
            }},
      route{"/api/memory", "GET",
            [](const request& r, process& p) {
              only(r, {});
              return as_json(memory_view(p));
            }},
      route{"/api/source", "GET",
            [](const request& r, process& p) {
              only(r, {"file", "line"});
              const std::string* const file = r.parameter("file");
              if (file == nullptr) throw wrong("file is a path that /api/stacks names");
              if (r.parameter("line") == nullptr) throw wrong("line is a number, 1 of the first line");
              return as_json(source_view(p, *file, number<unsigned>(r, "line", 1, 1, 1U << 30)));
            }},
      route{"/api/mistakes", "GET",
            [](const request& r, process& p) {
              only(r, {});
              return as_json(mistakes_view(p));
            }},
      route{"/api/control", "POST", control},
      route{"/api/classes.csv", "GET",
            [](const request& r, process& p) {
              only(r, {});
              return as_csv(p, "classes", classes_csv(p));
            }},
      route{"/api/threads.csv", "GET",
            [](const request& r, process& p) {
              only(r, {});
              return as_csv(p, "threads", threads_csv(p));
            }},
      route{"/api/history.csv", "GET",
            [](const request& r, process& p) {
              only(r, {});
              return as_csv(p, "history", history_csv(p));
            }},
      route{"/api/sites.csv", "GET",
            [](const request& r, process& p) {
              only(r, {});
              return as_csv(p, "sites", sites_csv(p));
            }},
      route{"/api/collapsed", "GET",
            [](const request& r, process& p) {
              only(r, {"value", "since", "until", "threads"});
              const stack_question question = stack_question_of(r, p, 1, 1);
              if (question.other) throw wrong("collapsed stacks are not compared with another run");
              return made("text/plain; charset=utf-8", collapsed_answer(p, question));
            }},
      route{"/api/snapshot", "GET", nullptr, snapshot},
      route{"/metrics", "GET", nullptr, metrics},
      route{"/debug/pprof/heap", "GET", [](const request& r, process& p) { return profile(r, p, true); }},
      route{"/debug/pprof/allocs", "GET", [](const request& r, process& p) { return profile(r, p, false); }},
  };
  return known;
}

http_response refused(int status, const std::string& why) {
  http_response result = made("text/plain; charset=utf-8", why + "\n");
  result.status = status;
  return result;
}

}  // namespace

http_response routes::answer(const http_request& request) const {
  if (auto objection = guard_.objection(request)) return std::move(*objection);
  return answer_of(request, what_);
}

http_response answer_of(const http_request& request, const shown_run& what) {
  const std::string_view method = request.method == "HEAD" ? "GET" : std::string_view(request.method);
  bool is_known = false;
  for (const route& r : table()) {
    if (r.path != request.path) continue;
    is_known = true;
    if (r.method != method) continue;
    try {
      return r.of_all != nullptr ? r.of_all(request, what) : of_one(request, what.family, r.answer);
    } catch (const bad_question& question) {
      return refused(question.status(), question.what());
    }
  }
  if (!is_known) return refused(404, "there is nothing at this address");
  http_response result = refused(405, "not with this method");
  result.headers.emplace_back("Allow", method == "POST" ? "GET, HEAD" : "POST");
  return result;
}

}  // namespace heapwright::tool
