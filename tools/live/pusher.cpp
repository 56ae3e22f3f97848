#include "pusher.hpp"

#include <algorithm>
#include <csignal>
#include <ctime>
#include <exception>
#include <utility>

#include <fmt/format.h>
#include <protozero/pbf_reader.hpp>

#include "failure.hpp"
#include "printable.hpp"
#include "terminal.hpp"

namespace heapwright::tool {
namespace {

using namespace std::chrono_literals;

constexpr auto longest_pause = 5min;
constexpr auto longest_request = 10s;

std::uint64_t monotonic_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

/// What an OTLP receiver says where it has taken a request and left something out; else empty.
std::string rejected_part(const std::string& response) try {
  std::string message;
  for (protozero::pbf_reader reply(response); reply.next(1);) {  // partial_success
    protozero::pbf_reader part = reply.get_message();
    while (part.next()) {
      if (part.tag() == 2 && part.wire_type() == protozero::pbf_wire_type::length_delimited)
        message = part.get_string();
      else
        part.skip();
    }
  }
  return message;
} catch (const protozero::exception&) {
  return {};  // it is no such message
}

std::string first_words(const http_reply& reply) {
  const std::string text = printable(reply.body.substr(0, reply.body.find_first_of("\r\n")), 200);
  return text.empty() ? "" : fmt::format(" ({})", text);
}

/// Of an answer that is no success: what it is, and what to do.
std::string why_refused(const http_reply& reply, receiver_kind kind) {
  std::string said = fmt::format("the receiver answers {}{}", reply.status, first_words(reply));
  switch (reply.status) {
    case 301:
    case 302:
    case 303:
    case 307:
    case 308:
      return fmt::format("the receiver answers {} and points to {}; give --push the address that it has itself",
                         reply.status, printable(reply.location, 200));
    case 401:
    case 403: return said + "; --push-header or HEAPWRIGHT_PUSH_HEADERS says who pushes";
    case 404:
    case 405:
      return said + (kind == receiver_kind::otlp ? "; does it take profiles by OTLP/HTTP, v1development?"
                                                 : "; is it a Pyroscope, and is the path above it right?");
    case 413: return said + "; let it take larger requests, or push less often";
    default: return said;
  }
}

/// What does not concern this one request alone.
bool is_of_all_requests(int status) { return status == 0 || status == 429 || status >= 500; }

std::string program_name(const segment::process_figures& process) {
  const std::string& program = process.shown_program.empty() ? process.program : process.shown_program;
  const std::string name = program.substr(program.rfind('/') + 1);
  return name.empty() ? "unknown" : name;
}

}  // namespace

pusher::pusher(push_target target) : target_(std::move(target)) {
  if (const std::string complaint = client_.complaint(target_.url); !complaint.empty())
    throw failure(exit_code::bad_input, fmt::format("--push {}: {}", printable(target_.shown), complaint));
}

pusher::~pusher() { finish(); }

void pusher::start(watched_family& family, const std::string& host) {
  family_ = &family;
  host_ = host;
  started_ns_ = monotonic_ns();
  thread_ = std::thread([this] { run(); });
}

void pusher::finish() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard hold(mutex_);
    is_ending_ = true;
    until_ = clock::now() + at_the_end;
  }
  ends_.notify_all();
  thread_.join();
}

/// For a request.
pusher::clock::duration pusher::time_left() const {
  const std::lock_guard hold(mutex_);
  return is_ending_ ? std::min<clock::duration>(until_ - clock::now(), longest_request) : longest_request;
}

pusher::clock::duration pusher::pause() const {
  const clock::duration every = target_.every;
  return std::max(every, std::min<clock::duration>(every * (1U << std::min(failures_, 10U)), longest_pause));
}

void pusher::run() {
  // A receiver that closes the connection must not end this process.
  sigset_t closed_pipe;
  sigemptyset(&closed_pipe);
  sigaddset(&closed_pipe, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &closed_pipe, nullptr);

  for (clock::time_point due = clock::now() + target_.every;;) {
    bool is_last = false;
    {
      std::unique_lock hold(mutex_);
      is_last = ends_.wait_until(hold, std::min(due, clock::now() + 1s), [&] { return is_ending_; });
    }
    look();
    if (is_last) {
      const outcome last = push_all();
      return last.trouble.empty() ? tell_outcome(last) : tell_loss(last);
    }
    if (clock::now() < due) continue;
    tell_outcome(push_all());
    due = clock::now() + pause();
  }
}

void pusher::look() {
  for (const auto& [name, process] : family_->watched_run()) {
    const auto seen = process->now(false);
    const bool is_first = !std::exchange(has_seen_first_, true);
    if (processes_.contains(name) || !seen->has_probe || (seen->state != life::running && !is_first)) continue;
    if (processes_.size() >= most_known) {
      const auto ended = std::ranges::find_if(
          processes_, [](const auto& p) { return p.second.process->now(false)->state != life::running; });
      if (ended == processes_.end()) continue;
      processes_.erase(ended);
    }
    known_process& known = processes_[name];
    known.process = process;
    known.told_ns = seen->figures.process.started_ns;
    // What a process had allocated before it was attached to has not been allocated just now.
    if (!family_->is_asked_for() || known.told_ns >= started_ns_) continue;
    for (const segment::stack_figures& s : process->own_stacks().figures)
      known.told[s.id] = {s.allocations, s.allocated_bytes};
    known.told_ns = seen->figures.at_ns;
  }
}

pusher::outcome pusher::push_all() {
  outcome round;
  for (auto& [name, known] : processes_) {
    if (time_left() <= clock::duration::zero()) return {"there was no time for more", false};
    outcome one;
    try {
      one = push(known);
    } catch (const std::exception& trouble) {
      one.trouble = trouble.what();  // there is no memory for it, say
    }
    if (!one.trouble.empty()) round = one;
    if (!round.may_go_on) break;
  }
  std::erase_if(processes_, [](const auto& p) { return p.second.is_complete; });
  return round;
}

pusher::outcome pusher::push(known_process& of) {
  const bool has_ended = of.process->now(false)->state != life::running;
  const seen_stacks stacks = of.process->own_stacks();
  const segment::snapshot& figures = stacks.seen->figures;
  const segment::process_figures& p = figures.process;

  profile_options options;
  options.interval = p.interval;
  options.at_unix_ns = p.started_unix_ns + (figures.at_ns - p.started_ns);
  options.duration_ns = figures.at_ns > of.told_ns ? figures.at_ns - of.told_ns : 0;
  options.program = p.program;
  options.before = &of.told;
  const bool is_empty =
      std::ranges::all_of(stacks.figures, [&](const auto& s) { return values_of(s, options) == heap_values{}; });
  outcome result;
  // What has been replaced by exec goes on as another process.
  if (!is_empty && stacks.seen->state != life::replaced) {
    profile_resource resource;
    resource.process_id = p.process_id;
    resource.attributes = {{"service.name", target_.service.empty() ? program_name(p) : target_.service},
                           {"host.name", host_},
                           {"process.executable.name", program_name(p)}};
    resource.attributes.insert(resource.attributes.end(), target_.labels.begin(), target_.labels.end());
    std::string body;
    of.process->places().use_symbols(figures, [&](symbolizer& symbols) {
      body = target_.kind == receiver_kind::otlp ? otlp_profiles(stacks.figures, symbols, options, resource)
                                                 : pprof_profile(stacks.figures, symbols, options);
    });
    result = send(body, resource, options);
  }
  if (!result.trouble.empty()) return result;
  for (const segment::stack_figures& s : stacks.figures) of.told[s.id] = {s.allocations, s.allocated_bytes};
  of.told_ns = figures.at_ns;
  of.is_complete = has_ended;
  return result;
}

pusher::outcome pusher::send(const std::string& body, const profile_resource& resource, const profile_options& of) {
  const bool is_otlp = target_.kind == receiver_kind::otlp;
  std::string url = target_.url;
  std::vector<std::string> headers = target_.headers;
  if (is_otlp) {
    headers.emplace_back("Content-Type: application/x-protobuf");
    headers.emplace_back("Content-Encoding: gzip");
  } else {
    auto labels = resource.attributes;
    labels.erase(labels.begin());  // the service's name
    labels.emplace_back("process.pid", std::to_string(resource.process_id));
    url += fmt::format("?name={}&from={}&until={}&format=pprof&spyName=heapwright",
                       pyroscope_name(resource.attributes.front().second, labels),
                       (of.at_unix_ns - of.duration_ns) / 1'000'000'000, of.at_unix_ns / 1'000'000'000);
    headers.emplace_back("Content-Type: application/octet-stream");
  }
  const auto at_most = std::chrono::ceil<std::chrono::milliseconds>(time_left());
  const http_reply reply =
      client_.post(url, headers, body, std::max(at_most, 1ms), [&] { return time_left() > clock::duration::zero(); });
  if (reply.status == 0) return {printable(reply.trouble, 300), false};
  if (reply.status < 200 || reply.status >= 300)
    return {why_refused(reply, target_.kind), !is_of_all_requests(reply.status)};
  const std::string left_out = is_otlp ? rejected_part(reply.body) : "";
  if (!left_out.empty() && !std::exchange(has_told_of_part_, true))
    tell("heapwright: push to {}: the receiver has left out profiles: {}\n", target_.shown, printable(left_out, 200));
  return {};
}

/// Once, and not again until it has worked again.
void pusher::tell_outcome(const outcome& round) {
  if (round.trouble.empty()) {
    if (std::exchange(failures_, 0) > 0) tell("heapwright: push to {} works again\n", target_.shown);
    return;
  }
  if (failures_++ > 0) return;
  tell("heapwright: push to {}: {}. The program goes on; what was not taken comes with a later push\n", target_.shown,
       round.trouble);
}

void pusher::tell_loss(const outcome& last_round) const {
  if (last_round.trouble.empty()) return;
  tell("heapwright: push to {}: {}. The last profiles are lost\n", target_.shown, last_round.trouble);
}

}  // namespace heapwright::tool
