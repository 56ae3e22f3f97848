#include "places.hpp"

#include <array>
#include <string_view>

#include <fmt/format.h>

#include "symbols.hpp"

namespace heapwright::tool {
namespace {

/// "std::vector<int>::push_back(int&&)" begins with std::, and so does "void std::swap<int>(int&, int&)".
std::string_view qualified_name(std::string_view function) {
  const auto end = function.find_first_of("<(");
  const std::string_view head = function.substr(0, end);
  const auto space = head.rfind(' ');
  if (head.find("operator") != std::string_view::npos || space == std::string_view::npos) return head;
  return head.substr(space + 1);
}

bool is_library_allocation(const place& p) {
  static constexpr std::array<std::string_view, 5> beginnings{"std::", "__gnu_cxx::", "operator new", "operator delete",
                                                              "void* operator new"};
  static constexpr std::array<std::string_view, 14> names{
      "malloc", "calloc",  "realloc", "reallocarray", "memalign", "aligned_alloc", "posix_memalign",
      "valloc", "pvalloc", "strdup",  "strndup",      "__strdup", "xmalloc",       "__libc_malloc"};
  const std::string_view name = qualified_name(p.function);
  for (const std::string_view beginning : beginnings)
    if (name.starts_with(beginning)) return true;
  for (const std::string_view exact : names)
    if (name == exact) return true;
  return p.module.find("libheapwright-probe") != std::string::npos;
}

std::string key_of(const place& p) {
  return fmt::format("{}\n{}\n{}\n{}\n{}", p.function, p.file, p.line, p.module, p.is_inlined);
}

}  // namespace

places_book::places_book() = default;
places_book::~places_book() = default;

void places_book::know_modules(const trace::snapshot& figures) {
  if (!symbols_) symbols_ = std::make_unique<symbolizer>(figures.modules, figures.process.process_id);
  if (figures.modules.size() == modules_known_) return;
  symbols_->add_modules(figures.modules);
  modules_known_ = figures.modules.size();
}

void places_book::use_symbols(const trace::snapshot& figures, const std::function<void(symbolizer&)>& use) {
  const std::lock_guard hold(mutex_);
  know_modules(figures);
  use(*symbols_);
}

std::vector<std::uint32_t> places_book::at(std::uint64_t return_address, const trace::snapshot& figures) {
  const std::lock_guard hold(mutex_);
  if (const auto found = at_.find(return_address); found != at_.end()) return found->second;
  know_modules(figures);
  const location& found = symbols_->resolve(return_address);
  std::vector<std::uint32_t> numbers;
  for (const source_frame& frame : found.frames)
    numbers.push_back(number_of({frame.function, frame.file, frame.line, found.module, frame.is_inlined}));
  // What has no name may get one: code made at run time is described a little later.
  if (found.is_known) at_[return_address] = numbers;
  return numbers;
}

std::uint32_t places_book::number_of(const place& p) {
  const auto [entry, is_new] = numbers_.emplace(key_of(p), static_cast<std::uint32_t>(all_.size()));
  if (is_new) {
    all_.push_back(p);
    machinery_.push_back(is_library_allocation(p));
  }
  return entry->second;
}

place places_book::operator[](std::uint32_t number) const {
  const std::lock_guard hold(mutex_);
  return all_[number];
}

bool places_book::is_machinery(std::uint32_t number) const {
  const std::lock_guard hold(mutex_);
  return machinery_[number];
}

}  // namespace heapwright::tool
