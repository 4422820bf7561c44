# Operators: own cases beside the public conformance suites.
foreach(part arrays attention transforms strings shapes)
  hone_test(test_ops_${part} test_ops_${part}.c text_case.c op_case.c)
endforeach()
foreach(part layers codes inference classical foreign search)
  hone_test(test_ops_${part} test_ops_${part}.c op_case.c)
endforeach()
hone_test_tool(test_ops_random test_ops_random.c op_case.c)
hone_ctest(test_ops_random test_ops_random)
