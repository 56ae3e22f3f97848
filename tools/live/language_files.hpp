// What files of languages are, by where they are installed: a language's interpreter, its own
// library, or a package that was got for it.
//
// Paths are those of Debian, and of what builds and installs languages elsewhere: pyenv, rbenv,
// perlbrew, Docker's images; pip, npm, gem, Bundler, Composer, CPAN, Cargo, Go's modules.
#pragma once

#include <string>
#include <string_view>

namespace heapwright::tool {

/// "python", "ruby", ... of a program or a library that is an interpreter; empty: it is none.
[[nodiscard]] std::string_view language_of_interpreter(std::string_view path);

/// "python", "node", ... of a script that comes with the language, or an extension in C that does;
/// empty: it is none.
[[nodiscard]] std::string_view language_of_library(std::string_view path);

/// The package that a file was installed with: "numpy", "@scope/name", "rack", "vendor/name";
/// empty: it came with none.
[[nodiscard]] std::string package_in(std::string_view path);
[[nodiscard]] bool is_of_package(std::string_view path);

/// "rust", "zig", "go" of a source file that comes with the language and is compiled into the
/// program, or that its compiler has made; empty: it is none.
[[nodiscard]] std::string_view language_of_source(std::string_view file);

/// The package that a source file was got with: Rust's crate "serde_json", Go's module
/// "github.com/mattn/go-sqlite3"; empty: it came with none.
[[nodiscard]] std::string package_of_source(std::string_view file);

}  // namespace heapwright::tool
