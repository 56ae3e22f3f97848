#include "given_advice.hpp"

#include <cerrno>
#include <cstring>
#include <exception>
#include <fstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "failure.hpp"

namespace heapwright::tool {
namespace {

using json = nlohmann::ordered_json;

json shown(const json& given) {
  const json& site = given.at("site");
  const auto line = [&] { return site.at("line").is_null() ? json(0) : json(site.at("line").get<std::uint64_t>()); };
  const auto file = [&] { return site.at("file").is_null() ? std::string() : site.at("file").get<std::string>(); };
  const json container = site.contains("container") ? site.at("container") : json(nullptr);
  const json& saves = given.at("saves");
  return {{"kind", given.at("kind").get<std::string>()},
          {"function", site.at("function").get<std::string>()},
          {"file", file()},
          {"line", line()},
          {"container", container},
          {"seen", given.at("seen").get<std::string>()},
          {"part", given.at("part").get<std::string>()},
          {"code", given.at("code").get<std::vector<std::string>>()},
          {"saves", saves.is_null() ? json(nullptr) : json(saves.at("sentence").get<std::string>())}};
}

}  // namespace

std::string advice_view(const std::string& file) {
  json all = {{"advice", json::array()}};
  if (!file.empty()) {
    std::ifstream from(file);
    if (!from) throw failure(exit_code::bad_input, fmt::format("--advice {}: {}", file, std::strerror(errno)));
    try {
      const json report = json::parse(from);
      for (const json& given : report.at("advice"))
        if (given.at("saves").is_null() || given.at("is_worth_it").get<bool>()) all["advice"].push_back(shown(given));
    } catch (const std::exception&) {  // also of a folder, which can be opened and not read
      throw failure(exit_code::bad_input,
                    fmt::format("--advice {}: it is not what `heapwright advise --json` writes", file));
    }
  }
  return all.dump();
}

}  // namespace heapwright::tool
