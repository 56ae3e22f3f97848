# Writes OUTPUT from TEMPLATE with the revision of SOURCE_DIR, if that has changed. Run by each build.
#   cmake -DSOURCE_DIR= -DTEMPLATE= -DOUTPUT= -Dsystem= -Dsanitizers= -P revision.cmake
set(revision unknown)
find_program(git git)
# A copy without a history may lie in the repository of something else.
if(git AND EXISTS ${SOURCE_DIR}/.git)
  execute_process(COMMAND ${git} describe --always --exclude * --abbrev=12 --dirty=+changes
    WORKING_DIRECTORY ${SOURCE_DIR} OUTPUT_VARIABLE described OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE result ERROR_QUIET)
  if(result EQUAL 0)
    set(revision ${described})
  endif()
endif()
configure_file(${TEMPLATE} ${OUTPUT} @ONLY)
