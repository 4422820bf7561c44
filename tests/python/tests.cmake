# A library with sanitizers cannot be loaded into a Python without.
if(NOT HONE_SANITIZE AND NOT HONE_FUZZ)
  hone_test_tool(python_layouts layouts.c)
  hone_ctest(python sh ${CMAKE_CURRENT_SOURCE_DIR}/python/run.sh ${CMAKE_BINARY_DIR})
  # All but what is random, and operators of training.
  hone_ctest(scoreboard sh ${CMAKE_CURRENT_SOURCE_DIR}/python/scoreboard.sh ${CMAKE_BINARY_DIR} --at-least 96)
endif()
