# find_package(heapwright) and pkg-config for what is installed.
include(CMakePackageConfigHelpers)

install(DIRECTORY include/heapwright DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development FILES_MATCHING PATTERN "*.hpp" PATTERN "*.h")
# run, compare, live and others preload what is installed.
install(CODE [[
  if(CMAKE_INSTALL_PREFIX MATCHES "[ :]")
    message(WARNING "The loader cannot preload libraries from \"${CMAKE_INSTALL_PREFIX}\": LD_PRELOAD takes no path with a space or a colon. Choose another prefix")
  endif()
]])
install(TARGETS heapwright_headers heapwright_shared heapwright_hardened heapwright_static EXPORT heapwright-targets
  LIBRARY COMPONENT library NAMELINK_COMPONENT development ARCHIVE COMPONENT development)
# gdb loads what lies at the path of a library below its own directory. `cmake --install --prefix` may change the prefix; cpack installs
# into a folder of its own.
foreach(part record heap describer commands values gdb lldb)
  install(FILES debuggers/heapwright_${part}.py DESTINATION ${CMAKE_INSTALL_DATADIR}/heapwright/debuggers COMPONENT library)
endforeach()
install(CODE "
  set(heapwright_prefix_to_be \"\${CMAKE_INSTALL_PREFIX}\")
  if(CMAKE_INSTALL_PREFIX MATCHES /_CPack_Packages/)
    set(heapwright_prefix_to_be \"${CMAKE_INSTALL_PREFIX}\")
  endif()
" COMPONENT library)
foreach(target heapwright_shared heapwright_hardened)
  install(FILES debuggers/libheapwright-gdb.py COMPONENT library RENAME $<TARGET_FILE_NAME:${target}>-gdb.py
    DESTINATION "${CMAKE_INSTALL_DATADIR}/gdb/auto-load\${heapwright_prefix_to_be}/${CMAKE_INSTALL_LIBDIR}")
endforeach()
if(HEAPWRIGHT_BUILD_TOOLS AND NOT HEAPWRIGHT_SANITIZE)
  install(TARGETS heapwright heapwright_probe)
  # What `heapwright build` compiles, and the programs that subcommands run.
  install(DIRECTORY abi malloc unwind DESTINATION ${CMAKE_INSTALL_DATADIR}/heapwright FILES_MATCHING PATTERN "*.hpp" PATTERN "*.cpp")
  install(TARGETS malloc_conformance malloc_limit stress heapwright_replayer DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/heapwright)
endif()
install(EXPORT heapwright-targets NAMESPACE heapwright:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/heapwright COMPONENT development)
# Not where find_package looks: of a PATH with build/release/bin it makes a prefix.
configure_package_config_file(cmake/heapwright-config.cmake.in ${PROJECT_BINARY_DIR}/package/heapwright-config.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/heapwright)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/package/heapwright-config-version.cmake COMPATIBILITY SameMinorVersion)
# A prefix that moves with the files, whatever `cmake --install --prefix` says.
file(RELATIVE_PATH prefix_from_pc /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
configure_file(cmake/heapwright.pc.in ${PROJECT_BINARY_DIR}/heapwright.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/package/heapwright-config.cmake ${PROJECT_BINARY_DIR}/package/heapwright-config-version.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/heapwright COMPONENT development)
install(FILES ${PROJECT_BINARY_DIR}/heapwright.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT license)  # Debian's packages have it as their copyright file
install(FILES README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs examples DESTINATION ${CMAKE_INSTALL_DOCDIR} USE_SOURCE_PERMISSIONS)
