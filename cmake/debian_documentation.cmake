# Run by cpack on what is installed, before it is packed: the files that each Debian package has
# beside its own, and man pages as Debian has them.
find_program(GZIP gzip REQUIRED)

function(compress file)
  execute_process(COMMAND ${GZIP} -9nf ${file} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

set(time_format "%a, %d %b %Y %H:%M:%S +0000")
string(TIMESTAMP now ${time_format} UTC)  # SOURCE_DATE_EPOCH, where it is set
foreach(component IN LISTS CPACK_COMPONENTS_ALL)
  string(TOUPPER ${component} name)
  set(package ${CPACK_DEBIAN_${name}_PACKAGE_NAME})
  set(root ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/${component}/usr)
  set(folder ${root}/share/doc/${package})
  file(READ ${CPACK_RESOURCE_FILE_LICENSE} license)
  file(WRITE ${folder}/copyright "${license}")
  file(WRITE ${folder}/changelog.Debian "heapwright (${CPACK_PACKAGE_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}) unstable; urgency=medium

  * Version ${CPACK_PACKAGE_VERSION}.

 -- ${CPACK_DEBIAN_PACKAGE_MAINTAINER}  ${now}
")
  compress(${folder}/changelog.Debian)
  configure_file(${CMAKE_CURRENT_LIST_DIR}/lintian/${package} ${root}/share/lintian/overrides/${package} COPYONLY)
  file(GLOB pages ${root}/share/man/man*/*.[0-9])
  foreach(page IN LISTS pages)
    compress(${page})
  endforeach()
endforeach()
