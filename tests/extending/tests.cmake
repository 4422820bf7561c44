# One file and one line: units are added to a copy of the tree, which is built (make test-extending: all of them). Once is enough.
if(NOT HONE_SANITIZE)
  hone_ctest(extending sh ${CMAKE_CURRENT_LIST_DIR}/extend.sh command rule operator pointwise_operator)
  set_tests_properties(extending PROPERTIES LABELS any_processor COST 98)
endif()
