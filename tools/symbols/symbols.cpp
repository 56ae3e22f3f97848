#include "symbols.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <ranges>
#include <string_view>

#include <fmt/format.h>

#include "debug_file.hpp"
#include "interpreted_lines.hpp"

namespace heapwright::tool {

struct symbolizer::known_module {
  segment::module_figures figures;
  std::string path;                  ///< as this process opens it
  std::unique_ptr<debug_file> file;  ///< null: not yet opened

  debug_file& opened() {
    segment::module_figures here = figures;
    here.path = path;
    if (!file) file = std::make_unique<debug_file>(here);
    return *file;
  }
};

namespace {

bool are_same(const segment::module_figures& a, const segment::module_figures& b) {
  return a.begin == b.begin && a.end == b.end && a.base == b.base && a.path == b.path;
}

constexpr std::string_view kinds_of_javascript[] = {"JS:", "LazyCompile:", "Function:", "Script:", "Eval:"};

/// Of a module of ECMAScript's V8 has the URL.
std::string path_of(std::string_view file) {
  constexpr std::string_view scheme = "file://";
  if (!file.starts_with(scheme)) return std::string(file);
  file.remove_prefix(scheme.size());
  std::string path;
  for (std::size_t i = 0; i < file.size(); ++i) {
    unsigned byte = 0;
    const char *const digits = file.data() + i + 1, *const end = digits + 2;
    const bool is_escaped = file[i] == '%' && i + 2 < file.size() && std::from_chars(digits, end, byte, 16).ptr == end;
    path += is_escaped ? static_cast<char>(byte) : file[i];
    if (is_escaped) i += 2;
  }
  return path;
}

/// Of what V8 writes of a function: "JS:*handle /app/server.js:11:16", with a sign for how it was
/// compiled; before node 20 with LazyCompile, Function, Script or Eval in the place of JS, and, as
/// of Debian's node 18, without a column. The path may have spaces.
std::optional<source_frame> javascript_frame(std::string_view name) {
  const auto* const kind = std::ranges::find_if(kinds_of_javascript, [&](auto k) { return name.starts_with(k); });
  if (kind == std::end(kinds_of_javascript)) return std::nullopt;
  name.remove_prefix(kind->size());
  if (!name.empty() && std::string_view("*~^+'").find(name.front()) != std::string_view::npos) name.remove_prefix(1);
  const auto number_behind_colon = [&name]() -> std::optional<unsigned> {
    const auto colon = name.rfind(':');
    unsigned number = 0;
    if (colon == std::string_view::npos) return std::nullopt;
    const char* const end = name.data() + name.size();
    const auto read = std::from_chars(name.data() + colon + 1, end, number);
    if (read.ec != std::errc() || read.ptr != end) return std::nullopt;
    name = name.substr(0, colon);
    return number;
  };
  const auto last = number_behind_colon();
  const std::string_view without_last = name;
  auto line = number_behind_colon();
  if (!line && *kind != "JS:") {
    name = without_last;
    line = last;
  }
  if (!last || !line) return std::nullopt;
  std::size_t words = 0;  // that belong to the name
  for (const std::string_view word : {"bound ", "get ", "set "})
    while (name.substr(words).starts_with(word)) words += word.size();
  // A function may have such a word for its name.
  const auto space = name.find(' ', name.find(' ', words) != std::string_view::npos ? words : 0);
  if (space == std::string_view::npos) return std::nullopt;
  const std::string_view file = name.substr(space + 1);
  const std::string_view function = name.substr(0, space);
  return source_frame{std::string(function.empty() ? "(anonymous)" : function), path_of(file), *line};
}

}  // namespace

symbolizer::symbolizer(const std::vector<segment::module_figures>& modules, std::uint32_t process_id, std::string root)
    : root_(std::move(root)), code_made_(fmt::format("{}/tmp/perf-{}.map", root_, process_id)) {
  add_modules(modules);
}
symbolizer::symbolizer(symbolizer&&) noexcept = default;
symbolizer& symbolizer::operator=(symbolizer&&) noexcept = default;
symbolizer::~symbolizer() = default;

void symbolizer::add_modules(const std::vector<segment::module_figures>& modules) {
  for (const segment::module_figures& m : modules) {
    if (std::ranges::any_of(modules_, [&](const auto& known) { return are_same(known->figures, m); })) continue;
    modules_.push_back(std::make_unique<known_module>(known_module{m, root_ + m.path, nullptr}));
    ++generation_;
  }
}

void symbolizer::use_codes(std::shared_ptr<const segment::interpreted_codes> codes) {
  if (codes == codes_) return;
  codes_ = std::move(codes);
  ++generation_;
}

symbolizer::known_module* symbolizer::find(std::uint64_t pc) const {
  // A library that was unloaded may have left its addresses to a later one.
  for (const auto& m : modules_ | std::views::reverse)
    if (pc >= m->figures.begin && pc < m->figures.end) return m.get();
  return nullptr;
}

std::vector<segment::module_figures> symbolizer::modules() const {
  std::vector<segment::module_figures> all;
  for (const auto& m : modules_) all.push_back(m->figures);
  return all;
}

const segment::module_figures* symbolizer::module_of(std::uint64_t return_address) const {
  const known_module* const m = find(return_address - 1);
  return m == nullptr ? nullptr : &m->figures;
}

const location& symbolizer::resolve(std::uint64_t return_address) {
  answer& a = answers_[return_address];
  const bool is_interpreted = segment::is_interpreted_call(return_address);
  const bool may_become_known = a.generation != 0 && (is_interpreted ? !a.where.is_known : a.where.module.empty());
  if (may_become_known && !is_interpreted && code_made_.refresh()) ++generation_;
  if (a.generation == 0 || (may_become_known && a.generation != generation_)) {
    a.where.address = return_address;
    is_interpreted ? look_up_interpreted(a.where) : look_up(a.where);
    a.generation = generation_;
  }
  return a.where;
}

void symbolizer::look_up_interpreted(location& where) const {
  where.is_script = true;
  where.frames = {{"interpreted code without a name"}};
  if (!codes_) return;
  const auto code = codes_->find(segment::code_of_call(where.address));
  if (code == codes_->end()) return;
  const unsigned line = line_at(code->second, segment::position_in_call(where.address));
  where.is_known = true;
  where.module = code->second.file;
  where.frames = {{code->second.name, code->second.file, line}};
}

void symbolizer::look_up(location& where) {
  // A return address is that of the instruction after the call, which may be of another line or of
  // another function.
  const std::uint64_t pc = where.address - 1;
  if (known_module* const m = find(pc)) {
    where.module = m->figures.shown_path.empty() ? m->figures.path : m->figures.shown_path;
    where.frames = m->opened().frames_at(pc);
    where.is_known = !where.frames.empty();
    if (!where.is_known)
      where.frames = {{fmt::format("{}+{:#x}", std::filesystem::path(where.module).filename().string(),
                                   where.address - m->figures.base)}};
    return;
  }
  const std::string* name = code_made_.find(pc);
  if (name == nullptr && code_made_.refresh()) {
    ++generation_;
    name = code_made_.find(pc);
  }
  where.is_known = name != nullptr;
  where.module = name != nullptr ? code_made_.path() : "";
  where.frames = {{name != nullptr ? *name : fmt::format("{:#x}", where.address)}};
  if (name == nullptr) return;
  const auto script = javascript_frame(*name);
  if (!script) return;
  where.is_script = true;
  where.module = script->file;
  where.frames = {*script};
}

mapped_module symbolizer::describe(const segment::module_figures& module) {
  for (const auto& m : modules_)
    if (are_same(m->figures, module)) {
      debug_file& file = m->opened();
      return {module, file.file_offset(module.begin), file.build_id()};
    }
  return {module};
}

}  // namespace heapwright::tool
