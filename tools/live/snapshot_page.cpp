// The page asks its server questions and shows the answers. A snapshot is the page with the answers
// to most questions that it can ask, each under its question:
//
//   {"made": seconds since 1970, "view": the view that it opens with,
//    "process": NAME of the process that it opens with, or null: as the page chooses,
//    "common": {QUESTION: ANSWER, ...}, "processes": {NAME: {QUESTION: ANSWER, ...}, ...}}
//
// compressed by gzip, in base64, in an element of the page. A question is its path and its
// parameters in the order of their names, as connection.js has it too.
#include "snapshot_page.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <string_view>

#include <nlohmann/json.hpp>

#include "gzip.hpp"
#include "page.hpp"
#include "views.hpp"

namespace heapwright::tool {
namespace {

using json = nlohmann::ordered_json;
using parameters = std::map<std::string, std::string>;

constexpr std::size_t kept_processes = 8, kept_threads = 12, kept_moments = 6;
constexpr const char* most_nodes = "4000";
constexpr std::array values{"live", "peak", "allocated", "count", "short"};

std::string question_of(const std::string& path, const parameters& asked) {
  std::string question = path;
  for (const auto& [name, value] : asked) {
    question += question == path ? '?' : '&';
    question.append(name).append("=").append(value);
  }
  return question;
}

std::string json_text(const std::string& text) {
  return json(text).dump(-1, ' ', false, json::error_handler_t::replace);
}

/// The text of one JSON object, whose values are JSON already.
class joined_object {
 public:
  void add(const std::string& name, const std::string& value) {
    text_ += (text_.empty() ? "{" : ",") + json_text(name) + ":" + value;
  }
  [[nodiscard]] std::string text() const { return text_.empty() ? "{}" : text_ + "}"; }

 private:
  std::string text_;
};

/// The answers for one process.
class kept_answers {
 public:
  kept_answers(const shown_run& what, std::string process) : what_(what), process_(std::move(process)) {}

  /// Empty: there is none. `more`: parameters that the page does not give.
  std::string keep(const std::string& path, const parameters& asked, const parameters& more = {}) {
    http_request request;
    request.method = "GET";
    request.path = path;
    request.query.assign(asked.begin(), asked.end());
    request.query.insert(request.query.end(), more.begin(), more.end());
    if (!process_.empty()) request.query.emplace_back("process", process_);
    http_response answer = answer_of(request, what_);
    if (answer.status != 200) return "";
    answers_.add(question_of(path, asked), answer.body);
    return std::move(answer.body);
  }

  std::string keep_stacks(parameters asked) {
    const parameters usual{{"by", "function"}, {"from", "root"}, {"interpreter", "hidden"}, {"libraries", "shown"}};
    asked.insert(usual.begin(), usual.end());
    return keep("/api/stacks", asked, {{"most", most_nodes}});
  }

  std::string keep_sites(parameters asked) {
    asked["most"] = "1000";
    return keep("/api/sites", asked);
  }

  void keep_source(const json& place) {
    const auto file = place[1].get<std::string>();
    const auto line = place[2].get<unsigned>();
    if (file.empty() || line == 0 || !sources_.emplace(file, line).second) return;
    keep("/api/source", {{"file", file}, {"line", std::to_string(line)}});
  }

  [[nodiscard]] std::string text() const { return answers_.text(); }

 private:
  const shown_run& what_;
  std::string process_;
  joined_object answers_;
  std::set<std::pair<std::string, unsigned>> sources_;  ///< lines whose source is kept
};

/// Of the first sites, and of the calls that lead to them.
void keep_sources(kept_answers& kept, const json& sites) {
  constexpr std::size_t most_sites = 50, most_calls = 6;
  for (std::size_t i = 0; i < std::min(sites["sites"].size(), most_sites); ++i) {
    const json& stack = sites["sites"][i]["stack"];
    const auto begin = sites["sites"][i]["site"].get<std::size_t>();
    for (std::size_t call = begin; call < std::min(stack.size(), begin + most_calls); ++call)
      kept.keep_source(sites["places"][stack[call].get<std::size_t>()]);
  }
}

/// To the values of names of threads that a tree has, where these are higher.
void raise_values(std::map<std::string, double>& values_of_names, const json& tree) {
  for (const json& row : tree["threads"]) {
    double& value = values_of_names[row[0].get<std::string>()];
    value = std::max(value, row[1].get<double>());
  }
}

/// Those with most of any value, the first ones first.
std::vector<std::string> first_names(const std::map<std::string, double>& values_of_names) {
  std::vector<std::pair<double, std::string>> all;
  for (const auto& [name, value] : values_of_names)
    if (!name.empty()) all.emplace_back(value, name);
  std::ranges::sort(all, std::ranges::greater{});
  all.resize(std::min(all.size(), kept_threads));
  std::vector<std::string> names;
  for (const auto& [value, name] : all) names.push_back(name);
  return names;
}

/// Of all threads, in all forms; of the first names of threads, and of growth, in the usual one.
void keep_stacks_and_sites(kept_answers& kept, const json& state) {
  std::map<std::string, double> threads;
  for (const char* value : values) {
    if (const std::string sites = kept.keep_sites({{"value", value}}); !sites.empty())
      keep_sources(kept, json::parse(sites));
    for (const char* from : {"root", "site"}) {
      const std::string tree = kept.keep_stacks({{"value", value}, {"from", from}});
      if (!tree.empty()) raise_values(threads, json::parse(tree));
      kept.keep_stacks({{"value", value}, {"from", from}, {"libraries", "folded"}});
      for (const char* by : {"line", "package"}) kept.keep_stacks({{"value", value}, {"from", from}, {"by", by}});
    }
  }
  std::vector<std::string> moments{"start"};
  for (const json& mark : state["marks"])
    if (mark["can_compare"]) moments.push_back(mark["number"].dump());
  if (moments.size() > kept_moments) moments.erase(moments.begin() + 1, moments.end() - (kept_moments - 1));
  if (!state["other_run"].is_null()) {
    for (const char* value : values) {
      kept.keep_sites({{"value", value}, {"since", "other"}});
      for (const char* from : {"root", "site"})
        for (const char* libraries : {"shown", "folded"})
          kept.keep_stacks({{"value", value}, {"since", "other"}, {"from", from}, {"libraries", libraries}});
    }
  }
  for (const std::string& since : moments)
    for (const char* value : {"live", "peak", "allocated"}) {
      kept.keep_sites({{"value", value}, {"since", since}});
      for (const char* from : {"root", "site"}) kept.keep_stacks({{"value", value}, {"since", since}, {"from", from}});
    }
  for (const std::string& name : first_names(threads)) {
    kept.keep("/api/site_history", {{"threads", name}});
    for (const char* value : {"live", "peak", "allocated"}) {
      kept.keep_sites({{"value", value}, {"threads", name}});
      for (const char* from : {"root", "site"}) kept.keep_stacks({{"value", value}, {"threads", name}, {"from", from}});
    }
  }
}

std::string answers_for(const shown_run& what, const std::string& process) {
  kept_answers kept(what, process);
  const std::string state = kept.keep("/api/state", {});
  for (const char* path : {"/api/cells", "/api/leaks", "/api/memory", "/api/mistakes"}) kept.keep(path, {});
  kept.keep("/api/history", {{"most", "4000"}});
  kept.keep("/api/site_history", {});
  if (!state.empty()) keep_stacks_and_sites(kept, json::parse(state));
  return kept.text();
}

/// Of those with most live bytes, of the first, and of the one that is asked for.
std::vector<std::string> names_of_kept(const shown_run& what, const std::optional<std::string>& asked) {
  std::vector<family_member> all = what.family.all_members();
  if (all.size() > kept_processes) {
    std::ranges::partial_sort(all.begin() + 1, all.begin() + kept_processes, all.end(), std::ranges::greater{},
                              &family_member::live);
    all.resize(kept_processes);
  }
  std::vector<std::string> names;
  for (const family_member& m : all) names.push_back(m.name);
  if (asked && std::ranges::find(names, *asked) == names.end()) names.push_back(*asked);
  return names;
}

/// The list of processes, of these alone.
std::string list_of(const shown_run& what, const std::vector<std::string>& names) {
  json list = json::parse(processes_view(what.family, true));
  json rows = json::array();
  for (const json& row : list["rows"])
    if (std::ranges::find(names, row[0].get<std::string>()) != names.end()) rows.push_back(row);
  list["rows"] = rows;
  list["ended_before"] = 0;
  return list.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string base64(std::string_view bytes) {
  constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const std::size_t n = std::min<std::size_t>(3, bytes.size() - at);
    std::uint32_t three = 0;
    for (std::size_t i = 0; i < 3; ++i) three = three << 8 | (i < n ? static_cast<unsigned char>(bytes[at + i]) : 0);
    for (std::size_t i = 0; i < 4; ++i) text += i <= n ? digits[three >> (18 - 6 * i) & 63] : '=';
  }
  return text;
}

}  // namespace

std::string snapshot_page(const shown_run& what, const snapshot_opening& opening) {
  for (const std::string& name : names_of_kept(what, opening.process))
    if (const auto process = what.family.find(name)) process->look_again();
  const std::vector<std::string> names = names_of_kept(what, opening.process);
  joined_object common, processes, all;
  common.add("/api/processes", list_of(what, names));
  common.add("/api/advice", what.advice);
  for (const std::string& name : names) processes.add(name, answers_for(what, name));
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  all.add("made", std::to_string(std::chrono::duration_cast<std::chrono::seconds>(now).count()));
  all.add("view", json_text(opening.view));
  all.add("process", opening.process ? json_text(*opening.process) : "null");
  all.add("common", common.text());
  all.add("processes", processes.text());

  constexpr std::string_view place = "<!--SNAPSHOT-->";
  std::string page(live_page);
  page.replace(page.find(place), place.size(),
               "<script type=\"application/gzip\" id=\"snapshot\">" + base64(gzipped(all.text())) + "</script>");
  return page;
}

}  // namespace heapwright::tool
