# Debian packages, which script/package makes by cpack:
#
#   libheapwright0      the malloc, also hardened         (component library)
#   libheapwright-dev   headers, libheapwright.a, CMake and pkg-config files   (development)
#   heapwright          the command, the probe, documentation, man pages, completions   (command)
#   *-dbgsym            their debugging information
#
# All must be of one version: the command builds mallocs from the headers, and observes them.
set(HEAPWRIGHT_MAINTAINER "" CACHE STRING "Who makes the Debian packages: Name <address>")

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME heapwright)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_SOURCE_DIR}/build/packages)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_COMPONENTS_ALL library development command)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/debian_documentation.cmake)
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "")  # each package has its own

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_MAINTAINER ${HEAPWRIGHT_MAINTAINER})
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_DEBUGINFO_PACKAGE ON)

set(this_version "(= ${PROJECT_VERSION}-1)")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME libheapwright0)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libs)
set(CPACK_COMPONENT_LIBRARY_DESCRIPTION "fast and lean malloc, to preload or to link
libheapwright.so takes the place of malloc in a program, and
libheapwright-hardened.so finds what a program does wrong with its memory.")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libheapwright-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "libheapwright0 ${this_version}, libc6-dev")
set(CPACK_DEBIAN_DEVELOPMENT_DEBUGINFO_PACKAGE OFF)
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION "composable memory allocators, and the malloc to link
Headers of allocators for C++20: arenas, pools, slabs, a best-fit heap, the
thread-caching heap of the malloc. The malloc as a static library.")
set(CPACK_DEBIAN_COMMAND_PACKAGE_NAME heapwright)
set(CPACK_DEBIAN_COMMAND_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_COMMAND_PACKAGE_DEPENDS "libheapwright0 ${this_version}, libheapwright-dev ${this_version}")
set(CPACK_DEBIAN_COMMAND_PACKAGE_RECOMMENDS "g++")
set(CPACK_DEBIAN_COMMAND_PACKAGE_SUGGESTS "libcurl4")
set(CPACK_COMPONENT_COMMAND_DESCRIPTION "observes heaps, compares mallocs, builds the one that fits
Shows the heap of a real program while it runs, compares mallocs on it with
confidence intervals, records and replays what it does with its memory, and
builds a malloc from a recipe.")
include(CPack)
