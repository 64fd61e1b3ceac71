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

# ag_test(NAME LABEL SOURCE...): a GoogleTest program; each of its tests is a ctest NAME.SUITE.TEST with that label.
function(ag_test name label)
  add_executable(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE test_support GTest::gtest_main)
  target_precompile_headers(${name} REUSE_FROM test_headers)
  # Programs are asked for their tests when ctest runs: a build need not run what it built.
  gtest_discover_tests(${name} TEST_PREFIX ${name}. DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60 NO_PRETTY_VALUES
                       PROPERTIES LABELS ${label} TIMEOUT 600)
endfunction()
