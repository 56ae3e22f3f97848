//! Builds libheapwright.a and the C functions of src/heap.cpp, by CMake. A published crate has the
//! sources beside it in `vendor`; in the project they are the folder above.

use std::path::{Path, PathBuf};

fn main() {
    let here = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap());
    let vendored = here.join("vendor");
    let sources = if vendored.is_dir() { vendored } else { here.parent().unwrap().to_path_buf() };
    let mut build = cmake::Config::new(&here);
    build.define("HEAPWRIGHT_SOURCES", &sources).build_target("heapwright_rust").profile("Release");
    // A debug build of the program is no reason for a slow malloc.
    build.define("CMAKE_CXX_FLAGS_RELEASE", "-O2");
    if std::env::var_os("CARGO_FEATURE_HARDENED").is_some() {
        build.define("HEAPWRIGHT_RUST_RECIPE", "heapwright::hardened_recipe");
    }
    let libraries = build.build().join("build").join("rust");
    println!("cargo:rustc-link-search=native={}", libraries.display());
    println!("cargo:rustc-link-lib=static=heapwright_rust");
    // A heap hears by the C++ runtime that a thread ends.
    println!("cargo:rustc-link-lib=stdc++");
    for part in ["CMakeLists.txt", "src/heap.cpp"] {
        println!("cargo:rerun-if-changed={}", here.join(part).display());
    }
    for part in ["CMakeLists.txt", "cmake", "include", "malloc", "abi", "unwind"] {
        rerun_if_changed(&sources.join(part));
    }
}

fn rerun_if_changed(path: &Path) {
    println!("cargo:rerun-if-changed={}", path.display());
}
