# Run by ctest, not by CMake: makes entries of the tests of one GoogleTest program (see ag_test), which NAME, PROGRAM,
# LABEL and COST describe. A suite is one entry, or a test that many parameters share; one of more tests than kTogether
# is divided, so that no processor waits for the other at the end.
#
# A process for each test took most of the time of those of a millisecond, and each that has generated kernels compiled
# made the OpenCL driver read its library of functions anew, which takes longer than most kernels.
cmake_policy(VERSION 3.25)
set(kTogether 20)

if(NOT EXISTS ${PROGRAM})
  add_test(${NAME}_NOT_BUILT ${NAME}_NOT_BUILT)
  return()
endif()
execute_process(COMMAND ${PROGRAM} --gtest_list_tests OUTPUT_VARIABLE lines RESULT_VARIABLE code TIMEOUT 60)
if(NOT code EQUAL 0)
  message(FATAL_ERROR "${PROGRAM} --gtest_list_tests: ${code}\n${lines}")
endif()

# "Suite." at the start of a line, "  Test" or "  Test/Parameter" below; behind # stand types and values.
string(REGEX REPLACE " +#[^\n]*" "" lines "${lines}")
string(REPLACE "\n" ";" lines "${lines}")
set(entries "")
foreach(line ${lines})
  if(line MATCHES "^([^ ]+\\.)$")
    set(suite ${CMAKE_MATCH_1})
  elseif(line MATCHES "^  ([^/]+)(/?)")
    set(entry ${suite})
    if(CMAKE_MATCH_2)
      set(entry ${suite}${CMAKE_MATCH_1})
    endif()
    if(NOT entry IN_LIST entries)
      list(APPEND entries ${entry})
      set(count_${entry} 0)
    endif()
    math(EXPR count_${entry} "${count_${entry}} + 1")
  endif()
endforeach()

# Tests share the processors: OpenMP's threads that spin while they wait would take them from each other.
set(common GOMP_SPINCOUNT=0)
foreach(entry ${entries})
  set(filter "${entry}*")
  if(NOT entry MATCHES "\\.$")
    set(filter "${entry}/*")
  endif()
  string(REGEX REPLACE "\\.$" "" shown "${NAME}.${entry}")
  math(EXPR parts "(${count_${entry}} + ${kTogether} - 1) / ${kTogether}")
  foreach(part RANGE 1 ${parts})
    set(test ${shown})
    set(environment ${common})
    if(parts GREATER 1)
      set(test ${shown}.${part}of${parts})
      math(EXPR index "${part} - 1")
      set(environment "${common};GTEST_TOTAL_SHARDS=${parts};GTEST_SHARD_INDEX=${index}")
    endif()
    add_test(${test} ${PROGRAM} "--gtest_filter=${filter}")
    set_tests_properties(${test} PROPERTIES LABELS ${LABEL} TIMEOUT 1200 COST ${COST} WORKING_DIRECTORY ${FOLDER}
                         ENVIRONMENT "${environment}")
  endforeach()
endforeach()
