"""The Conan package: the libraries, their headers, and what find_package and pkg-config read. script/package conan makes it."""
import os
import re

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout
from conan.tools.files import load


class Heapwright(ConanFile):
    name = "heapwright"
    description = "Memory allocators that fit a program: a malloc, and a kit to make others from"
    license = "MIT"
    topics = ("malloc", "allocator", "memory")
    # Headers, a shared and two static libraries at once: an `shared` option would choose nothing.
    package_type = "unknown"
    settings = "os", "arch", "compiler", "build_type"
    exports_sources = "CMakeLists.txt", "LICENSE", "cmake/*", "debuggers/*", "include/*", "malloc/*", "abi/*", "unwind/*"

    def set_version(self):
        text = load(self, os.path.join(self.recipe_folder, "CMakeLists.txt"))
        self.version = re.search(r"project\(heapwright VERSION ([0-9.]+)", text)[1]

    def validate(self):
        if self.settings.os != "Linux":
            raise ConanInvalidConfiguration(f"heapwright runs on Linux, and not on {self.settings.os}")

    def layout(self):
        cmake_layout(self)

    def generate(self):
        toolchain = CMakeToolchain(self)
        for part in ("TOOLS", "TESTS", "BENCH", "EXAMPLES"):
            toolchain.cache_variables[f"HEAPWRIGHT_BUILD_{part}"] = "OFF"
        toolchain.cache_variables["CMAKE_INSTALL_LIBDIR"] = "lib"
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        cmake = CMake(self)
        for component in ("library", "development", "license"):
            cmake.install(component=component)

    def package_info(self):
        # The targets of README are those of the package's own files.
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs = ["lib/cmake/heapwright"]
        self.cpp_info.libs = ["heapwright"]
