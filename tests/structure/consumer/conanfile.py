"""Programs that have heapwright from Conan, by find_package."""
import os

from conan import ConanFile
from conan.tools.build import can_run
from conan.tools.cmake import CMake, cmake_layout


class Consumer(ConanFile):
    settings = "os", "arch", "compiler", "build_type"
    generators = "CMakeToolchain", "VirtualRunEnv"

    def requirements(self):
        self.requires(self.tested_reference_str)

    def layout(self):
        cmake_layout(self)

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def test(self):
        for program in ("with_kit", "with_malloc", "with_static_malloc", "with_kit_and_static_malloc"):
            if can_run(self):
                self.run(os.path.join(self.cpp.build.bindir, program), env="conanrun")
