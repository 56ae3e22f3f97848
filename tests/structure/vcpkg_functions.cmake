# What the port calls of vcpkg, as vcpkg's documentation says what it does, on Linux: enough to see that the port names files that are there, and
# that what it leaves can be built with. vcpkg itself is in no registry.
function(vcpkg_extract_source_archive result)
  cmake_parse_arguments(PARSE_ARGV 1 arg NO_REMOVE_ONE_LEVEL ARCHIVE "")
  file(ARCHIVE_EXTRACT INPUT "${arg_ARCHIVE}" DESTINATION "${CURRENT_BUILDTREES_DIR}/src")
  set(${result} "${CURRENT_BUILDTREES_DIR}/src" PARENT_SCOPE)
endfunction()

# Both configurations are built, the second one without optimisation.
function(vcpkg_cmake_configure)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" SOURCE_PATH OPTIONS)
  foreach(type Release Debug)
    set(prefix "${CURRENT_PACKAGES_DIR}")
    if(type STREQUAL Debug)
      string(APPEND prefix /debug)
    endif()
    execute_process(COMMAND ${CMAKE_COMMAND} -S "${arg_SOURCE_PATH}" -B "${CURRENT_BUILDTREES_DIR}/${type}" -G Ninja -DCMAKE_BUILD_TYPE=${type}
                            -DBUILD_SHARED_LIBS=OFF -DCMAKE_INSTALL_PREFIX=${prefix} -DCMAKE_INSTALL_LIBDIR=lib ${arg_OPTIONS}
                    OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
  endforeach()
endfunction()

function(vcpkg_cmake_install)
  foreach(type Release Debug)
    execute_process(COMMAND ${CMAKE_COMMAND} --build "${CURRENT_BUILDTREES_DIR}/${type}" --target install OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
  endforeach()
endfunction()

# The files for find_package move to share/PORT, those of the debug build beside them; they lead to the prefix from there.
function(vcpkg_cmake_config_fixup)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" CONFIG_PATH "")
  set(to "${CURRENT_PACKAGES_DIR}/share/${PORT}")
  file(MAKE_DIRECTORY "${to}")
  file(GLOB files "${CURRENT_PACKAGES_DIR}/${arg_CONFIG_PATH}/*.cmake")
  if(NOT files)
    message(FATAL_ERROR "There is nothing in ${arg_CONFIG_PATH}")
  endif()
  file(COPY ${files} DESTINATION "${to}")
  file(GLOB files "${CURRENT_PACKAGES_DIR}/debug/${arg_CONFIG_PATH}/*-debug.cmake")
  foreach(file ${files})
    file(READ ${file} text)
    string(REPLACE "\${_IMPORT_PREFIX}" "\${_IMPORT_PREFIX}/debug" text "${text}")
    get_filename_component(name ${file} NAME)
    file(WRITE "${to}/${name}" "${text}")
  endforeach()
  file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/lib/cmake" "${CURRENT_PACKAGES_DIR}/debug/lib/cmake")
  file(GLOB files "${to}/*.cmake")
  foreach(file ${files})
    file(READ ${file} text)
    string(REPLACE "\${CMAKE_CURRENT_LIST_DIR}/../../../" "\${CMAKE_CURRENT_LIST_DIR}/../../" text "${text}")
    string(REGEX REPLACE "(get_filename_component\\(_IMPORT_PREFIX \"\\$\\{CMAKE_CURRENT_LIST_FILE\\}\" PATH\\))(\n *get_filename_component\\([^\n]*\\))+"
           "\\1\nget_filename_component(_IMPORT_PREFIX \"\${_IMPORT_PREFIX}\" PATH)\nget_filename_component(_IMPORT_PREFIX \"\${_IMPORT_PREFIX}\" PATH)" text "${text}")
    file(WRITE ${file} "${text}")
  endforeach()
endfunction()

function(vcpkg_fixup_pkgconfig)
  file(GLOB_RECURSE files "${CURRENT_PACKAGES_DIR}/*.pc")
  if(NOT files)
    message(FATAL_ERROR "There is no file for pkg-config")
  endif()
endfunction()

function(vcpkg_install_copyright)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "" FILE_LIST)
  file(INSTALL ${arg_FILE_LIST} DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}" RENAME copyright)
endfunction()

include("${CURRENT_PORT_DIR}/portfile.cmake")
