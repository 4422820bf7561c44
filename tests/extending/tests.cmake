# One file and one line: units are added to a copy of the tree, which is built (make test-extending: all of them). Once is enough.
if(NOT HONE_SANITIZE)
  hone_ctest(extending sh ${CMAKE_CURRENT_LIST_DIR}/extend.sh command rule operator pointwise_operator)
  set_tests_properties(extending PROPERTIES LABELS any_processor COST 98)
  if(CMAKE_BUILD_TYPE STREQUAL Release AND CMAKE_C_FLAGS STREQUAL "" AND NOT HONE_FAULTS AND NOT HONE_PORTABLE)
    set_property(TEST extending APPEND PROPERTY ENVIRONMENT OBJECTS=${CMAKE_BINARY_DIR}) # compiled a moment ago
  endif()
endif()
