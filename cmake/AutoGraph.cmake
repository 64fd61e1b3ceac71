# Functions of this project's build: layers, ops, kernels, tests.

# ag_precompile_headers(TARGET): headers of the standard library and fmt that most sources of the target include are
# parsed once. None of the project's own: a change of one would build everything again.
function(ag_precompile_headers target)
  target_precompile_headers(${target} PRIVATE <algorithm> <array> <cmath> <cstdint> <cstring> <functional> <limits> <map>
    <memory> <numeric> <optional> <set> <span> <string> <string_view> <unordered_map> <utility> <vector> <fmt/core.h>)
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    target_compile_options(${target} PRIVATE -fpch-preprocess)  # ccache asks for it
  endif()
endfunction()

# ag_compile_together(TARGET [ACROSS]): compiles sources of TARGET in groups, as tools/unity_groups.py makes them, where
# AG_UNITY asks for it; ACROSS: also of several folders. Call it when the target has all of its sources.
function(ag_compile_together target)
  if(NOT AG_UNITY OR NOT Python3_Interpreter_FOUND)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "^[^$].*\\.cpp$")
  list(FILTER sources EXCLUDE REGEX "^${PROJECT_BINARY_DIR}/")
  list(TRANSFORM sources REPLACE "^([^/].*)$" "${CMAKE_CURRENT_SOURCE_DIR}/\\1")
  list(JOIN sources "\n" lines)
  set(list ${PROJECT_BINARY_DIR}/generated/unity/${target}.txt)
  file(CONFIGURE OUTPUT ${list} CONTENT "${lines}\n" @ONLY)
  set(flags)
  if("ACROSS" IN_LIST ARGN)
    set(flags --across)
  endif()
  execute_process(COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tools/unity_groups.py ${list} ${flags}
                  OUTPUT_VARIABLE groups COMMAND_ERROR_IS_FATAL ANY OUTPUT_STRIP_TRAILING_WHITESPACE)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tools/unity_groups.py)
  string(REPLACE "\n" ";" groups "${groups}")
  foreach(line ${groups})
    string(REGEX MATCH "^([^ ]+) (.+)$" match ${line})
    set_source_files_properties(${CMAKE_MATCH_2} TARGET_DIRECTORY ${target} PROPERTIES UNITY_GROUP ${CMAKE_MATCH_1})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  # A class of one source that has members of that source's own types: GCC takes what is included for a header.
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    set_target_properties(${target} PROPERTIES
                          UNITY_BUILD_CODE_BEFORE_INCLUDE "#pragma GCC diagnostic ignored \"-Wsubobject-linkage\"")
  endif()
endfunction()

# ag_layer(NAME): adds every source below src/NAME to the library. One library, so that users link one
# thing; the layer rule is checked by tools/check_layers.py instead of by link order.
function(ag_layer name)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${name}/*.cpp)
  if(sources)
    target_sources(autograph PRIVATE ${sources})
  endif()
endfunction()

# ag_backend(NAME): adds every source of src/backends/NAME, and includes backend.cmake there, which finds libraries. Its
# devices stand in the list of src/engine/devices.cpp.
macro(ag_backend name)
  ag_layer(backends/${name})
  include(${PROJECT_SOURCE_DIR}/src/backends/${name}/backend.cmake OPTIONAL)
endmacro()

# ag_ops(FAMILY OP...): compiles FAMILY/OP.cpp, which defines `const OpDef& OP_def()`, and lists the op.
function(ag_ops family)
  foreach(op ${ARGN})
    target_sources(autograph PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/${family}/${op}.cpp)
    set_property(GLOBAL APPEND PROPERTY AG_OPS ${op})
  endforeach()
endfunction()

# ag_op_table(FAMILY STEM OP...): as ag_ops, for several closely related ops in one source FAMILY/STEM.cpp.
function(ag_op_table family stem)
  target_sources(autograph PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/${family}/${stem}.cpp)
  set_property(GLOBAL APPEND PROPERTY AG_OPS ${ARGN})
endfunction()

# ag_op_sources(FAMILY STEM...): sources of the op layer that define no op.
function(ag_op_sources family)
  foreach(stem ${ARGN})
    target_sources(autograph PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/${family}/${stem}.cpp)
  endforeach()
endfunction()

# Writes from all ag_ops() words ops/op_list.inc, which lists the ops, and ops/defs.h, which declares their definitions;
# rewritten only when they change.
function(ag_write_op_list)
  get_property(ops GLOBAL PROPERTY AG_OPS)
  list(SORT ops)
  set(head "// Generated from src/ops/CMakeLists.txt.\n")
  set(list "${head}")
  set(defs "${head}#pragma once\n\n#include \"autograph/op_def.h\"\n\nnamespace autograph {\n\n")
  foreach(op ${ops})
    string(APPEND list "AG_OP(${op})\n")
    string(APPEND defs "const OpDef& ${op}_def();\n")
  endforeach()
  string(APPEND defs "\n}  // namespace autograph\n")
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/generated/ops/op_list.inc CONTENT "${list}" @ONLY)
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/generated/ops/defs.h CONTENT "${defs}" @ONLY)
endfunction()

# ag_test(NAME LABEL COST SOURCE...): a GoogleTest program; each of its suites is a ctest NAME.SUITE with that label. Those
# of a higher COST begin first.
function(ag_test name label cost)
  add_executable(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE test_support GTest::gtest_main)
  target_precompile_headers(${name} REUSE_FROM test_headers)
  ag_compile_together(${name} ACROSS)
  # Programs are asked for their tests when ctest runs: a build need not run what it built.
  set(entries ${CMAKE_CURRENT_BINARY_DIR}/${name}_entries.cmake)
  file(GENERATE OUTPUT ${entries} CONTENT "set(NAME ${name})
set(PROGRAM \"$<TARGET_FILE:${name}>\")
set(LABEL ${label})
set(COST ${cost})
set(FOLDER \"${CMAKE_CURRENT_BINARY_DIR}\")
include(\"${PROJECT_SOURCE_DIR}/cmake/AddTests.cmake\")
")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${entries})
endfunction()
