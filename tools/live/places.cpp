#include "places.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

#include "allocation_wrappers.hpp"
#include "language_files.hpp"
#include "symbols.hpp"

namespace heapwright::tool {
namespace {

std::string key_of(const place& p) {
  return fmt::format("{}\n{}\n{}\n{}\n{}\n{}", p.function, p.file, p.line, p.module, p.is_inlined, p.is_script);
}

/// What each call from C++ into JavaScript goes through. Stripped, as Debian's libnode is, V8 has
/// names for what it exports alone.
bool calls_javascript(const std::string& function) {
  return function == "Builtins_JSEntry" || function.starts_with("v8::Function::Call") ||
         function.starts_with("v8::Script::Run");
}

/// Source of the C++ library: what is a template is in the program itself.
bool is_of_cxx(const std::string& file) { return file.find("/include/c++/") != std::string::npos; }

}  // namespace

bool is_made_at_run_time(const std::string& module) {
  return module.find("/tmp/perf-") != std::string::npos && module.ends_with(".map");
}

bool has_name(const place& p) {
  const auto offset = p.function.find("+0x");
  const std::string file = p.module.substr(p.module.rfind('/') + 1);
  return offset == std::string::npos ? !p.function.starts_with("0x") : p.function.compare(0, offset, file) != 0;
}

places_book::places_book(function_patterns wrappers) : wrappers_(std::move(wrappers)) {}
places_book::~places_book() = default;

void places_book::know(const segment::snapshot& figures) {
  if (!symbols_) symbols_ = std::make_unique<symbolizer>(figures.modules, figures.process.own_id, figures.process.root);
  symbols_->use_codes(figures.codes);
  if (figures.modules.size() != modules_known_) symbols_->add_modules(figures.modules);
  modules_known_ = figures.modules.size();
  const segment::process_figures& process = figures.process;
  program_ = process.shown_program.empty() ? process.program : process.shown_program;  // as modules are named
  know_interpreter(figures);
}

void places_book::know_interpreter(const segment::snapshot& figures) {
  if (has_met_interpreter_ || figures.process.interpreter_at == 0) return;
  const segment::module_figures* const module = symbols_->module_of(figures.process.interpreter_at + 1);
  if (module == nullptr) return;
  set_interpreter(module->shown_path.empty() ? module->path : module->shown_path);
}

void places_book::set_interpreter(const std::string& module) {
  interpreter_ = module;
  has_met_interpreter_ = true;
  for (std::size_t i = 0; i < all_.size(); ++i) of_interpreter_[i] = all_[i].module == interpreter_;
}

void places_book::use_symbols(const segment::snapshot& figures, const std::function<void(symbolizer&)>& use) {
  const std::lock_guard hold(mutex_);
  know(figures);
  use(*symbols_);
}

std::vector<std::uint32_t> places_book::at(std::uint64_t return_address, const segment::snapshot& figures) {
  const std::lock_guard hold(mutex_);
  if (const auto found = at_.find(return_address); found != at_.end()) return found->second;
  know(figures);
  const location& found = symbols_->resolve(return_address);
  std::vector<std::uint32_t> numbers;
  for (const source_frame& frame : found.frames)
    numbers.push_back(
        number_of({frame.function, frame.file, frame.line, found.module, frame.is_inlined, found.is_script}));
  // What has no name may get one: code made at run time is described a little later.
  if (found.is_known) at_[return_address] = numbers;
  return numbers;
}

std::uint32_t places_book::number_of(const place& p) {
  const auto [entry, is_new] = numbers_.emplace(key_of(p), static_cast<std::uint32_t>(all_.size()));
  if (is_new) {
    all_.push_back(p);
    wrapper_.push_back(is_wrapper(p));
    of_library_.push_back(is_of_library(p.module));
    of_interpreter_.push_back(!interpreter_.empty() && p.module == interpreter_);
    if (!has_met_interpreter_ && calls_javascript(p.function)) set_interpreter(p.module);
  }
  return entry->second;
}

place places_book::operator[](std::uint32_t number) const {
  const std::lock_guard hold(mutex_);
  return all_[number];
}

bool places_book::is_wrapper(const place& p) const {
  const std::string name = qualified_name(p.function);
  if (wrappers_.find(p.function) != nullptr || wrappers_.find(name) != nullptr) return true;
  return !p.is_script && (!language_of_source(p.file).empty() || is_of_cxx(p.file) ||
                          known_allocation_wrappers().find(name) != nullptr ||
                          p.module.find("libheapwright-probe") != std::string::npos);
}

bool places_book::is_wrapper(std::uint32_t number) const {
  const std::lock_guard hold(mutex_);
  return wrapper_[number];
}

/// Code that an interpreter has made and not named is its own, too.
bool places_book::is_interpreters(std::uint32_t number) const {
  return of_interpreter_[number] || (all_[number].module.empty() && !all_[number].is_script);
}

bool places_book::is_own_script(std::uint32_t number) const { return all_[number].is_script && !of_library_[number]; }

std::size_t places_book::site_in(const std::vector<std::uint32_t>& places) const {
  std::vector<frame_kind> kinds;
  kinds.reserve(places.size());
  const std::lock_guard hold(mutex_);
  const bool has_scripts = std::ranges::any_of(places, [this](std::uint32_t p) { return all_[p].is_script; });
  const bool has_own = std::ranges::any_of(places, [this](std::uint32_t p) { return is_own_script(p); });
  for (const std::uint32_t number : places) {
    const place& p = all_[number];
    const bool is_for_script = (has_scripts && is_interpreters(number)) || (has_own && of_library_[number]);
    kinds.push_back(wrapper_[number] || is_for_script ? frame_kind::wrapper
                    : has_name(p)                     ? frame_kind::other
                                                      : frame_kind::nameless);
  }
  return site_among(kinds);
}

std::size_t places_book::caller_of(std::size_t site, const std::vector<std::uint32_t>& places) const {
  const std::lock_guard hold(mutex_);
  const auto from = places.begin() + static_cast<std::ptrdiff_t>(site), end = places.end();
  const place& at = all_[*from];
  const auto in_script = std::find_if(from, end, [this](std::uint32_t p) { return all_[p].is_script; });
  const auto tells_more = [&](std::uint32_t number) {
    const place& p = all_[number];
    return p.function != at.function && !wrapper_[number] && (has_name(at) || has_name(p)) &&
           (in_script == end || p.is_script);
  };
  return static_cast<std::size_t>(std::find_if(from, end, tells_more) - places.begin());
}

bool places_book::has_script(const std::vector<std::uint32_t>& places) const {
  const std::lock_guard hold(mutex_);
  return std::ranges::any_of(places, [this](std::uint32_t p) { return all_[p].is_script; });
}

std::string places_book::interpreter() const {
  const std::lock_guard hold(mutex_);
  return interpreter_;
}

void places_book::suppose_interpreter(const std::string& module) {
  const std::lock_guard hold(mutex_);
  if (has_met_interpreter_) return;
  set_interpreter(module);
  has_met_interpreter_ = false;
}

std::uint32_t places_book::number_for(const place& p) {
  const std::lock_guard hold(mutex_);
  return number_of(p);
}

bool places_book::has_file(const std::string& file) const {
  const std::lock_guard hold(mutex_);
  return std::ranges::any_of(all_, [&](const place& p) { return p.file == file && !file.empty(); });
}

std::vector<std::uint32_t> places_book::without_interpreter(std::vector<std::uint32_t> places) const {
  const std::lock_guard hold(mutex_);
  const auto outermost =
      std::find_if(places.rbegin(), places.rend(), [this](std::uint32_t p) { return all_[p].is_script; });
  if (outermost == places.rend()) return places;
  places.erase(outermost.base(), places.end());
  std::erase_if(places, [this](std::uint32_t p) { return is_interpreters(p); });
  return places;
}

/// Has code of its own: no wrapper, no interpreter, no library.
bool places_book::is_of_program(std::uint32_t number) const {
  const place& p = all_[number];
  if (p.is_script) return is_own_script(number) && !is_of_package(p.module);
  if (!package_of_source(p.file).empty()) return false;
  if (wrapper_[number] || is_interpreters(number) || is_of_package(p.module)) return false;
  if (!interpreter_.empty() && is_made_at_run_time(p.module)) return false;
  const std::string name = qualified_name(p.function);
  constexpr std::array<std::string_view, 3> languages{"std::", "__gnu_cxx::", "_start"};
  if (std::ranges::any_of(languages, [&](std::string_view of) { return name.starts_with(of); })) return false;
  constexpr std::array<std::string_view, 4> systems{"/lib/", "/lib64/", "/usr/lib/", "/usr/lib64/"};
  return p.module == program_ ||
         std::ranges::none_of(systems, [&](std::string_view of) { return p.module.starts_with(of); });
}

std::uint32_t places_book::package_at(std::uint32_t number) {
  if (const auto known = packages_.find(number); known != packages_.end()) return known->second;
  const std::string package = package_of(all_[number]);
  const std::uint32_t made = number_of({.function = package, .file = "", .module = package});
  packages_.emplace(number, made);
  return made;
}

void places_book::add_package(std::vector<std::uint32_t>& to, std::uint32_t number) {
  const std::uint32_t package = package_at(number);
  if (to.empty() || to.back() != package) to.push_back(package);
}

std::vector<std::uint32_t> places_book::by_package(const std::vector<std::uint32_t>& places) {
  const std::lock_guard hold(mutex_);
  std::vector<std::uint32_t> packages;
  for (const std::uint32_t p : places) add_package(packages, p);
  return packages;
}

std::vector<std::uint32_t> places_book::with_libraries_folded(const std::vector<std::uint32_t>& places) {
  const auto is_of_program = [this](std::uint32_t p) { return this->is_of_program(p); };
  std::vector<std::uint32_t> folded;
  {
    const std::lock_guard hold(mutex_);
    const auto end = std::ranges::find_if(places.rbegin(), places.rend(), is_of_program).base();
    for (auto p = places.begin(); p != end; ++p) {
      if (is_of_program(*p)) {
        folded.push_back(*p);
      } else if (!wrapper_[*p]) {
        add_package(folded, *p);
      }
    }
  }
  return folded.empty() ? by_package(places) : folded;
}

std::string package_of(const place& p) {
  const std::string& path = p.module;
  if (const std::string_view language = language_of_source(p.file); !language.empty()) return std::string(language);
  if (std::string package = package_of_source(p.file); !package.empty()) return package;
  if (path.empty() && p.is_script) return "scripts";
  if (path.empty() || is_made_at_run_time(path)) return "code made at run time";
  if (const std::string_view language = language_of_library(path); !language.empty()) return std::string(language);
  if (is_of_package(path)) return package_in(path);
  if (const std::string_view language = language_of_interpreter(path); !p.is_script && !language.empty())
    return std::string(language);
  const std::size_t name = path.rfind('/');
  if (!p.is_script || name == std::string::npos) return path.substr(name + 1);
  const std::size_t folder = name == 0 ? std::string::npos : path.rfind('/', name - 1);
  return path.substr(folder + 1, name - folder);
}

bool is_of_library(const std::string& file) { return !language_of_library(file).empty(); }

std::size_t site_among(const std::vector<frame_kind>& innermost_first) {
  const auto end = innermost_first.end();
  for (auto frame = innermost_first.begin(); frame != end; ++frame) {
    if (*frame == frame_kind::wrapper) continue;
    const auto with_name = std::find_if(frame, end, [](frame_kind k) { return k != frame_kind::nameless; });
    if (with_name == end || *with_name != frame_kind::wrapper)
      return static_cast<std::size_t>(frame - innermost_first.begin());
    frame = with_name;
  }
  return 0;
}

}  // namespace heapwright::tool
