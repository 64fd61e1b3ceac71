# Needs neither headers nor libraries of NVIDIA's: what it calls is declared in abi.h, and looked for when a program runs.
target_link_libraries(autograph PRIVATE ${CMAKE_DL_LIBS})
