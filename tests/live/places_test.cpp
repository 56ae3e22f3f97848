// What places belong to: the program's own code, packages, libraries. A book of places is filled
// from a snapshot made by hand and a map of code that was made at run time.
#include "places.hpp"

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "../segment/segment_builder.hpp"

namespace heapwright::tool {
namespace {

std::string package_of_script(const std::string& file) {
  return package_of({.function = "f", .file = "", .module = file, .is_script = true});
}
std::string package_of_code(const std::string& file) {
  return package_of({.function = "f", .file = "", .module = file});
}

TEST(package_of, is_what_the_file_was_installed_with) {
  EXPECT_EQ(package_of_script("/usr/lib/python3/dist-packages/numpy/core/x.py"), "numpy");
  EXPECT_EQ(package_of_script("/venv/lib/python3.11/site-packages/six.py"), "six");
  EXPECT_EQ(package_of_script("/app/node_modules/express/lib/router/index.js"), "express");
  EXPECT_EQ(package_of_script("/app/node_modules/@scope/name/index.js"), "@scope/name");
  EXPECT_EQ(package_of_script("/app/node_modules/a/node_modules/b/index.js"), "b");
  EXPECT_EQ(package_of_code("/venv/lib/python3.11/site-packages/numpy/core/_x.cpython-311.so"), "numpy");
  EXPECT_EQ(package_of_code("/venv/lib/python3.11/site-packages/_cffi.cpython-311.so"), "_cffi");
  EXPECT_EQ(package_of_script("/app/node_modules/@scope"), "@scope") << "no such file is installed";
  EXPECT_EQ(package_of_script("/app/site-packages/"), "");
}

TEST(package_of, is_what_ruby_php_and_perl_were_given) {
  EXPECT_EQ(package_of_script("/var/lib/gems/3.1.0/gems/rack-2.2.4/lib/rack/handler.rb"), "rack");
  EXPECT_EQ(package_of_script("/srv/app/vendor/bundle/ruby/3.1.0/gems/aws-sdk-s3-1.2/lib/a.rb"), "aws-sdk-s3");
  EXPECT_EQ(package_of_code("/usr/local/bundle/gems/nokogiri-1.13.0-x86_64/lib/nokogiri.so"), "nokogiri");
  EXPECT_EQ(package_of_script("/srv/app/vendor/symfony/http-kernel/HttpKernel.php"), "symfony/http-kernel");
  EXPECT_EQ(package_of_script("/usr/share/php/PEAR/Registry.php"), "PEAR");
  EXPECT_EQ(package_of_script("/usr/share/perl5/LWP/UserAgent.pm"), "LWP");
  EXPECT_EQ(package_of_script("/usr/local/share/perl/5.36.0/Mojo/Base.pm"), "Mojo");
  EXPECT_EQ(package_of_script("/opt/perl/lib/site_perl/5.36.0/Mojolicious.pm"), "Mojolicious");
  EXPECT_EQ(package_of_code("/usr/lib/x86_64-linux-gnu/perl5/5.36/auto/DBI/DBI.so"), "auto");
}

TEST(package_of, is_ruby_php_or_perl_where_these_brought_it) {
  for (const char* const file :
       {"<internal:kernel>", "/usr/lib/ruby/3.1.0/set.rb", "/usr/lib/ruby/vendor_ruby/rubygems/specification.rb",
        "/usr/lib/x86_64-linux-gnu/ruby/3.1.0/stringio.so", "/home/me/.rbenv/versions/3.1.2/lib/ruby/3.1.0/set.rb"})
    EXPECT_EQ(package_of_script(file), "ruby") << file;
  for (const char* const file :
       {"/usr/share/perl/5.36/JSON/PP.pm", "/usr/lib/x86_64-linux-gnu/perl/5.36/List/Util.pm",
        "/usr/lib/x86_64-linux-gnu/perl-base/strict.pm", "/usr/local/lib/perl5/5.36.0/Carp.pm"})
    EXPECT_EQ(package_of_script(file), "perl") << file;
  EXPECT_EQ(package_of_code("/usr/lib/php/20220829/opcache.so"), "php");
  for (const char* const interpreter : {"/usr/bin/ruby", "/usr/bin/ruby3.1", "/usr/lib/libruby-3.1.so.3.1"})
    EXPECT_EQ(package_of_code(interpreter), "ruby");
  for (const char* const interpreter :
       {"/usr/bin/php", "/usr/bin/php8.2", "/usr/sbin/php-fpm8.2", "/usr/lib/libphp.so"})
    EXPECT_EQ(package_of_code(interpreter), "php");
  for (const char* const interpreter : {"/usr/bin/perl", "/usr/bin/perl5.36.0", "/usr/lib/libperl.so.5.36"})
    EXPECT_EQ(package_of_code(interpreter), "perl");
  for (const char* const own : {"/srv/ruby/app.rb", "/srv/perl/app.pl", "/srv/lib/php/app.php", "/srv/vendor/app.rb"})
    EXPECT_FALSE(is_of_library(own)) << own;
}

TEST(package_of, is_the_language_or_the_file_or_the_folder) {
  EXPECT_EQ(package_of_script("<frozen importlib._bootstrap>"), "python");
  EXPECT_EQ(package_of_script("node:internal/buffer"), "node");
  EXPECT_EQ(package_of_script("/usr/lib/python3.11/json/encoder.py"), "python");
  EXPECT_EQ(package_of_code("/usr/lib/python3.11/lib-dynload/_json.so"), "python");
  for (const char* const interpreter : {"/usr/bin/python3.11", "/usr/bin/python3", "/opt/lib/libpython3.13.so.1.0"})
    EXPECT_EQ(package_of_code(interpreter), "python");
  EXPECT_EQ(package_of_code("/lib/x86_64-linux-gnu/libc.so.6"), "libc.so.6");
  EXPECT_EQ(package_of_code("program"), "program");
  EXPECT_EQ(package_of_script("/srv/app/main.py"), "app/");
  EXPECT_EQ(package_of_script("app/main.py"), "app/");
  EXPECT_EQ(package_of_script("/main.py"), "/");
  EXPECT_EQ(package_of_script("<string>"), "<string>");
  EXPECT_EQ(package_of_script(""), "scripts");
  EXPECT_EQ(package_of_code(""), "code made at run time");
  EXPECT_EQ(package_of_code("/tmp/perf-1234.map"), "code made at run time");
  EXPECT_EQ(package_of_code("/proc/7/root/tmp/perf-1234.map"), "code made at run time") << "in a container";
}

std::string package_of_rust(const std::string& source) {
  return package_of({.function = "f", .file = source, .module = "/srv/app/server"});
}

TEST(package_of, is_the_crate_that_source_was_got_with) {
  EXPECT_EQ(
      package_of_rust("/home/me/.cargo/registry/src/index.crates.io-6f17d22bba15001f/serde_json-1.0.140/src/de.rs"),
      "serde_json");
  EXPECT_EQ(package_of_rust("/home/me/.cargo/registry/src/index/tokio-rustls-0.26.1/src/lib.rs"), "tokio-rustls");
  EXPECT_EQ(package_of_rust("/rustc/17067e9ac6d7/library/alloc/src/vec/mod.rs"), "rust");
  EXPECT_EQ(package_of_rust("/rust/deps/hashbrown-0.15.2/src/raw/mod.rs"), "rust");
  EXPECT_EQ(package_of_rust("/home/me/.rustup/toolchains/stable/lib/rustlib/src/rust/library/core/src/option.rs"),
            "rust");
  EXPECT_EQ(package_of_rust("/srv/app/src/main.rs"), "server");
}

TEST(places_book, takes_rusts_library_for_functions_that_allocate_for_others) {
  places_book book;
  const auto number = [&](const char* function, const char* file) {
    return book.number_for({.function = function, .file = file, .line = 1, .module = "/srv/app/server"});
  };
  const std::uint32_t grow =
                          number("<i32 as core::fmt::Display>::fmt", "/rustc/17067e9ac6d7/library/core/src/fmt/mod.rs"),
                      without_source = number("<alloc::vec::Vec<u8>>::reserve", ""),
                      own = number("<server::Cache as core::fmt::Display>::fmt", "/srv/app/src/main.rs"),
                      main = number("server::main", "/srv/app/src/main.rs");
  EXPECT_TRUE(book.is_wrapper(grow));
  EXPECT_TRUE(book.is_wrapper(without_source));
  EXPECT_FALSE(book.is_wrapper(own));
  EXPECT_EQ(book.site_in({without_source, grow, own, main}), 2U);
  EXPECT_EQ(book.with_libraries_folded({without_source, grow, own, main}), (std::vector{own, main}));
}

std::string package_of_go(const std::string& source) {
  return package_of({.function = "f", .file = source, .module = "/srv/app/server"});
}

TEST(package_of, is_the_module_that_go_has_got) {
  EXPECT_EQ(package_of_go("/home/me/go/pkg/mod/github.com/mattn/go-sqlite3@v1.14.22/sqlite3.go"),
            "github.com/mattn/go-sqlite3");
  EXPECT_EQ(package_of_go("/home/me/go/pkg/mod/github.com/mattn/go-sqlite3@v1.14.22/sqlite3-binding.c"),
            "github.com/mattn/go-sqlite3");
  EXPECT_EQ(package_of_go("././github.com/mattn/go-sqlite3@v1.14.22/sqlite3.go"), "github.com/mattn/go-sqlite3");
  EXPECT_EQ(package_of_go("/srv/app/vendor/github.com/mattn/go-sqlite3/sqlite3.go"), "github.com/mattn/go-sqlite3");
  for (const char* of_go :
       {"/usr/local/go/src/net/http/server.go", "/usr/lib/go-1.19/src/runtime/asm_amd64.s", "runtime/cgocall.go",
        "/home/me/sdk/go1.22.0/src/database/sql/sql.go", "/opt/hostedtoolcache/go/1.21.5/x64/src/runtime/proc.go",
        "/home/me/go/pkg/mod/golang.org/toolchain@v0.0.1-go1.24.0.linux-amd64/src/runtime/proc.go",
        "/usr/local/go/src/runtime/cgo/gcc_linux_amd64.c", "/_/GOROOT/src/runtime/cgo/gcc_util.c",
        "././_cgo_gotypes.go", "/tmp/go-build/cgo-gcc-prolog", "././<autogenerated>", "././runtime/proc.go",
        "runtime/asm_amd64.s"})
    EXPECT_EQ(package_of_go(of_go), "go") << of_go;
  for (const char* own : {"/go/src/app/main.go", "/home/me/go/src/github.com/me/app/log/log.go", "/srv/shop/main.go",
                          "/srv/go-shop/src/log/log.go", "example.com/shop/main.go", "/srv/shop@v2/cache.c"})
    EXPECT_EQ(package_of_go(own), "server") << own;
}

TEST(places_book, takes_what_go_calls_c_by_for_functions_that_allocate_for_others) {
  places_book book;
  const auto number = [&](const char* function, const char* file) {
    return book.number_for({.function = function, .file = file, .line = 1, .module = "/srv/app/server"});
  };
  const std::uint32_t allocate = number("_cgo_5f43c66ad7b1_Cfunc__Cmalloc", ""),
                      change_stack = number("runtime.asmcgocall.abi0", "/usr/local/go/src/runtime/asm_amd64.s"),
                      call = number("runtime.cgocall", ""), stub = number("main._Cfunc__CMalloc", "_cgo_gotypes.go"),
                      own = number("main.(*cache).fill", "/srv/app/cache.go"),
                      serve = number("net/http.(*conn).serve", "/usr/local/go/src/net/http/server.go");
  EXPECT_EQ(book.site_in({allocate, change_stack, call, stub, own, serve}), 4U);
  EXPECT_EQ(book.with_libraries_folded({allocate, change_stack, call, stub, own, serve}), (std::vector{own}));
  const std::uint32_t in_c = number("decode_picture", "/srv/app/decode.c");
  EXPECT_EQ(book.site_in({in_c, allocate, change_stack, call, stub, own}), 0U);
  EXPECT_EQ(book.caller_of(0, {in_c, allocate, change_stack, call, stub, own}), 5U);
}

TEST(places_book, takes_zigs_library_for_functions_that_allocate_for_others) {
  places_book book;
  const auto number = [&](const char* function, const char* file) {
    return book.number_for({.function = function, .file = file, .line = 1, .module = "/srv/app/server"});
  };
  const std::uint32_t join = number("fs.path.join", "/opt/zig/lib/std/fs/path.zig"),
                      without_source = number("mem.Allocator.alloc__anon_5681", ""),
                      own = number("main.Shop.cached", "/srv/app/std/shop.zig"),
                      main = number("main.main", "/srv/app/main.zig");
  EXPECT_TRUE(book.is_wrapper(join));
  EXPECT_TRUE(book.is_wrapper(without_source));
  EXPECT_FALSE(book.is_wrapper(own));
  EXPECT_EQ(book.site_in({without_source, join, own, main}), 2U);
  EXPECT_EQ(package_of(book[join]), "zig");
  EXPECT_EQ(package_of(book[own]), "server");
}

/// Names of calls, each of which is in one place.
class known_places : public testing::Test {
 protected:
  known_places() {
    figures.process.own_id = 7;
    figures.process.root = folder.path();
    figures.process.program = "/usr/lib/app/bin/server";
    add_module(0x10000, figures.process.program);
    add_module(0x20000, "/usr/lib/libz.so.1");
    add_module(0x30000, "/opt/app/libplugin.so");
    add_module(0x40000, "/venv/site-packages/numpy/core.so");
    add_module(0x50000, "/lib/x86_64-linux-gnu/libc.so.6");
    const auto codes = std::make_shared<segment::interpreted_codes>();
    const auto add_code = [&](const char* name, const char* file) {
      segment::interpreted_code_figures& code = (*codes)[static_cast<segment::reference>(codes->size() + 1)];
      code.name = name;
      code.file = file;
    };
    add_code("serve", "/srv/app/main.py");
    add_code("dumps", "/usr/lib/python3.11/json/__init__.py");
    add_code("array", "/venv/site-packages/numpy/array.py");
    figures.codes = codes;
    std::filesystem::create_directory(folder / "tmp");
    std::ofstream map(folder / "tmp/perf-7.map");
    for (const char* const name :
         {"std::sort<int*>", "malloc", "java.util.List::add", "JS:*handle /srv/app/main.js:3:4"}) {
      made[name] = 0x90000 + made.size() * 0x100;
      map << std::hex << made[name] << " 100 " << name << '\n';
    }
  }

  void add_module(std::uint64_t begin, const std::string& path) {
    figures.modules.push_back({.begin = begin, .end = begin + 0x1000, .base = begin, .path = path});
  }

  /// Return addresses, the innermost first: in the modules by their number, or in code made at run
  /// time by its name.
  [[nodiscard]] std::uint64_t in_module(unsigned number) const { return number * 0x10000 + 0x10; }
  [[nodiscard]] std::uint64_t in_made(const char* name) const { return made.at(name) + 0x10; }
  [[nodiscard]] static std::uint64_t in_python(segment::reference code) {
    return segment::interpreted_call_of(code, 0);
  }

  std::vector<std::uint32_t> places(const std::vector<std::uint64_t>& addresses) {
    std::vector<std::uint32_t> all;
    for (const std::uint64_t address : addresses) all.push_back(book.at(address, figures).at(0));
    return all;
  }
  std::vector<std::string> names(const std::vector<std::uint32_t>& numbers) {
    std::vector<std::string> all;
    for (const std::uint32_t n : numbers) all.push_back(book[n].function);
    return all;
  }
  std::vector<std::string> folded(const std::vector<std::uint64_t>& addresses) {
    return names(book.with_libraries_folded(places(addresses)));
  }

  using list = std::vector<std::string>;

  static constexpr unsigned program = 1, zlib = 2, plugin = 3, numpy = 4, libc = 5;

  segment::scratch_folder folder;
  segment::snapshot figures;
  std::map<std::string, std::uint64_t> made;
  places_book book;
};

TEST_F(known_places, by_package_are_one_for_each_run) {
  EXPECT_EQ(names(book.by_package(
                places({in_module(zlib), in_module(zlib) + 8, in_module(program), in_module(libc), in_module(zlib)}))),
            (list{"libz.so.1", "server", "libc.so.6", "libz.so.1"}));
  EXPECT_EQ(names(book.by_package(places({in_python(2), in_python(3), in_python(1)}))),
            (list{"python", "numpy", "app/"}));
  EXPECT_TRUE(book.by_package({}).empty());
  const auto numpys = book.by_package(places({in_python(3), in_module(numpy)}));
  EXPECT_EQ(numpys.size(), 1u) << "its scripts, and its code in C";
}

TEST_F(known_places, of_libraries_are_folded_between_those_of_the_program) {
  EXPECT_EQ(folded({in_module(zlib), in_module(libc), in_module(program), in_module(zlib), in_module(zlib) + 8,
                    in_module(plugin), in_module(libc)}),
            (list{"libz.so.1", "libc.so.6", "server+0x10", "libz.so.1", "libplugin.so+0x10"}))
      << "and what is outside is gone";
  for (const char* const name : {"malloc", "std::sort<int*>"})
    EXPECT_EQ(folded({in_made(name), in_module(program)}), (list{"server+0x10"})) << name << " allocates for others";
  EXPECT_EQ(folded({in_made("malloc"), in_module(zlib), in_module(libc)}),
            (list{"code made at run time", "libz.so.1", "libc.so.6"}))
      << "nothing is of the program: by package";
  EXPECT_EQ(folded({in_module(numpy), in_python(3), in_python(2), in_python(1), in_module(libc)}),
            (list{"numpy", "python", "serve"}));
  EXPECT_TRUE(folded({}).empty());
}

TEST_F(known_places, of_the_program_are_known_by_the_link_that_started_it) {
  figures.process.shown_program = "/usr/lib/app/bin/worker";
  figures.modules[0].shown_path = figures.process.shown_program;
  EXPECT_EQ(folded({in_module(zlib), in_module(program), in_module(libc)}), (list{"libz.so.1", "worker+0x10"}));
}

TEST_F(known_places, made_at_run_time_are_the_programs_where_there_is_no_interpreter) {
  EXPECT_EQ(folded({in_made("java.util.List::add"), in_module(libc)}), (list{"java.util.List::add"}));
  EXPECT_EQ(folded({in_module(libc), in_made("JS:*handle /srv/app/main.js:3:4")}), (list{"libc.so.6", "handle"}));
  figures.process.interpreter_at = in_module(zlib);  // its file has the interpreter
  (void)book.at(in_module(libc) + 8, figures);
  EXPECT_EQ(folded({in_made("java.util.List::add"), in_python(1)}), (list{"code made at run time", "serve"}));
}

TEST_F(known_places, name_files_of_the_source) {
  (void)places({in_python(1), in_module(program)});
  EXPECT_TRUE(book.has_file("/srv/app/main.py"));
  for (const char* const file : {"", "/usr/lib/app/bin/server", "main.py", "/srv/app/main.js"})
    EXPECT_FALSE(book.has_file(file)) << file;
}

}  // namespace
}  // namespace heapwright::tool
