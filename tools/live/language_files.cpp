#include "language_files.hpp"

#include <algorithm>
#include <array>

namespace heapwright::tool {
namespace {

constexpr auto npos = std::string_view::npos;

struct installed {
  std::string_view folder;
  bool has_version = false;      ///< a folder with a version follows
  bool names_version = false;    ///< the package's own folder has its version in its name: rack-2.2.4
  unsigned parts = 1;            ///< of the package's name
  std::string_view ending = {};  /// of such files; empty: any
};

constexpr std::array packages{
    installed{"/site-packages/"},
    installed{"/dist-packages/"},
    installed{"/node_modules/"},
    installed{"/gems/", false, true},
    installed{"/site_perl/", true},
    installed{"/vendor_perl/", true},
    installed{"/usr/share/perl5/"},
    installed{"/usr/local/share/perl/", true},
    installed{"-linux-gnu/perl5/", true},
    installed{"/usr/share/php/"},
    installed{"/vendor/", false, false, 2, ".php"},
};

bool has(std::string_view path, std::string_view part) { return path.find(part) != npos; }

/// Whether a number follows this, as in /lib/ruby/3.1.0.
bool has_number_behind(std::string_view path, std::string_view part) {
  const std::size_t at = path.find(part);
  return at != npos && at + part.size() < path.size() && path[at + part.size()] >= '0' && path[at + part.size()] <= '9';
}

/// Where the package's name begins; npos: the file is not installed so.
std::size_t package_begin(std::string_view path, const installed& as) {
  std::size_t at = path.rfind(as.folder);
  if (at == npos || !path.ends_with(as.ending)) return npos;
  at += as.folder.size();
  if (!as.has_version || at >= path.size() || path[at] < '0' || path[at] > '9') return at;
  const std::size_t behind_version = path.find('/', at);
  return behind_version == npos ? at : behind_version + 1;
}

std::string name_from(std::string_view path, std::size_t begin, const installed& as) {
  std::size_t end = path.find('/', begin);
  const bool is_of_scope = begin < path.size() && path[begin] == '@';  // @scope/name
  if ((is_of_scope || as.parts == 2) && end != npos) end = path.find('/', end + 1);
  // A package of one file is that file.
  if (end == npos) end = path.find('.', begin);
  const std::string_view name = path.substr(begin, end == npos ? end : end - begin);
  if (!as.names_version) return std::string(name);
  std::size_t version = name.find('-');
  while (version != npos && (version + 1 == name.size() || name[version + 1] < '0' || name[version + 1] > '9'))
    version = name.find('-', version + 1);
  return std::string(name.substr(0, version));
}

/// The innermost of the folders in which packages are.
std::pair<std::size_t, const installed*> innermost_package(std::string_view path) {
  std::pair<std::size_t, const installed*> found{npos, nullptr};
  for (const installed& as : packages) {
    const std::size_t begin = package_begin(path, as);
    if (begin != npos && (found.second == nullptr || begin > found.first)) found = {begin, &as};
  }
  return found;
}

}  // namespace

std::string_view language_of_interpreter(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  const auto is = [name](std::string_view program, std::string_view with_version, std::string_view library) {
    return name == program || name.starts_with(with_version) || name.starts_with(library);
  };
  if (is("python", "python3", "libpython3.")) return "python";
  if (is("ruby", "ruby3", "libruby") || name.starts_with("ruby2")) return "ruby";
  if (is("perl", "perl5", "libperl.so")) return "perl";
  if (is("php", "php-fpm", "libphp") || name.starts_with("php7") || name.starts_with("php8")) return "php";
  return {};
}

std::string_view language_of_library(std::string_view path) {
  if (path.starts_with("<frozen ")) return "python";
  if (path.starts_with("node:")) return "node";
  if (path.starts_with("<internal:")) return "ruby";
  if (is_of_package(path)) return {};
  if (has(path, "/lib/python3.")) return "python";
  if (has_number_behind(path, "/ruby/") || has(path, "/vendor_ruby/rubygems") || has(path, "/site_ruby/"))
    return "ruby";
  if (has(path, "/perl-base/") || has_number_behind(path, "/share/perl/") || has_number_behind(path, "/lib/perl5/") ||
      (has(path, "/lib/") && has_number_behind(path, "-linux-gnu/perl/")) || has(path, "/lib/5."))
    return "perl";
  if (has_number_behind(path, "/lib/php/")) return "php";
  return {};
}

std::string package_in(std::string_view path) {
  const auto [begin, as] = innermost_package(path);
  return as == nullptr ? std::string() : name_from(path, begin, *as);
}

bool is_of_package(std::string_view path) { return innermost_package(path).second != nullptr; }

}  // namespace heapwright::tool
