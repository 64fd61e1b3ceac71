# Finds oneDNN and makes the imported target DNNL::dnnl, the name that oneDNN's own package uses.
#
# Debian's package configuration of oneDNN demands OpenCL's headers, for a GPU runtime that AutoGraph does not use, and
# stops the configuration where they are missing. So the oneDNN in /usr is taken by its header and its library. Any other
# (/usr/local, CMAKE_PREFIX_PATH, dnnl_ROOT, dnnl_DIR) is asked for its package first: it may be static or built for
# another threading runtime, and only its package knows what it needs at link time.
#
# Result: OneDNN_FOUND, OneDNN_VERSION. Cache: OneDNN_INCLUDE_DIR, OneDNN_LIBRARY (empty where a package served).

set(OneDNN_ignored_before "${CMAKE_IGNORE_PREFIX_PATH}")
list(APPEND CMAKE_IGNORE_PREFIX_PATH / /usr)
find_package(dnnl CONFIG QUIET)
set(CMAKE_IGNORE_PREFIX_PATH "${OneDNN_ignored_before}")
unset(OneDNN_ignored_before)
include(FindPackageHandleStandardArgs)
if(dnnl_FOUND)
  set(OneDNN_VERSION ${dnnl_VERSION})
  find_package_handle_standard_args(OneDNN REQUIRED_VARS dnnl_DIR VERSION_VAR OneDNN_VERSION HANDLE_VERSION_RANGE)
  return()
endif()

find_path(OneDNN_INCLUDE_DIR oneapi/dnnl/dnnl.hpp)
find_library(OneDNN_LIBRARY dnnl)
mark_as_advanced(OneDNN_INCLUDE_DIR OneDNN_LIBRARY)
set(OneDNN_VERSION "")
if(EXISTS "${OneDNN_INCLUDE_DIR}/oneapi/dnnl/dnnl_version.h")
  file(STRINGS "${OneDNN_INCLUDE_DIR}/oneapi/dnnl/dnnl_version.h" lines REGEX "DNNL_VERSION_(MAJOR|MINOR|PATCH) +[0-9]+")
  list(TRANSFORM lines REPLACE ".* ([0-9]+).*" "\\1")
  list(JOIN lines "." OneDNN_VERSION)
endif()
find_package_handle_standard_args(OneDNN REQUIRED_VARS OneDNN_LIBRARY OneDNN_INCLUDE_DIR VERSION_VAR OneDNN_VERSION
                                  HANDLE_VERSION_RANGE)
if(OneDNN_FOUND AND NOT TARGET DNNL::dnnl)
  add_library(DNNL::dnnl UNKNOWN IMPORTED)
  set_target_properties(DNNL::dnnl PROPERTIES IMPORTED_LOCATION "${OneDNN_LIBRARY}"
                        INTERFACE_INCLUDE_DIRECTORIES "${OneDNN_INCLUDE_DIR}")
endif()
