# Install rules: the library, its headers, the program, and what find_package and pkg-config need.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(TARGETS autograph autograph_prove EXPORT autographTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS autograph_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY include/autograph DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(EXPORT autographTargets NAMESPACE autograph:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/autograph)

get_property(AG_HAS_ONEDNN GLOBAL PROPERTY AG_HAS_ONEDNN)
get_property(AG_HAS_OPENMP GLOBAL PROPERTY AG_HAS_OPENMP)
get_property(AG_IMAGE_MODULES GLOBAL PROPERTY AG_IMAGE_MODULES)
list(JOIN AG_IMAGE_MODULES " " AG_IMAGE_MODULES)
configure_package_config_file(cmake/autographConfig.cmake.in ${PROJECT_BINARY_DIR}/autographConfig.cmake
                              INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/autograph)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/autographConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/autographConfig.cmake ${PROJECT_BINARY_DIR}/autographConfigVersion.cmake
              cmake/FindOneDNN.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/autograph)
configure_file(cmake/autograph.pc.in ${PROJECT_BINARY_DIR}/autograph.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/autograph.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# Shell completion and the man page are printed by the program itself.
install(CODE "
  set(program \"${PROJECT_BINARY_DIR}/autograph\")
  foreach(page \"man;${CMAKE_INSTALL_MANDIR}/man1/autograph.1\"
               \"completion bash;${CMAKE_INSTALL_DATADIR}/bash-completion/completions/autograph\"
               \"completion zsh;${CMAKE_INSTALL_DATADIR}/zsh/site-functions/_autograph\"
               \"completion fish;${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d/autograph.fish\")
    list(GET page 0 words)
    list(GET page 1 target)
    separate_arguments(words)
    get_filename_component(folder \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/\${target}\" DIRECTORY)
    file(MAKE_DIRECTORY \"\${folder}\")
    execute_process(COMMAND \"\${program}\" \${words} OUTPUT_FILE \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/\${target}\"
                    COMMAND_ERROR_IS_FATAL ANY)
  endforeach()
")
