# The ONNX backend-test runner, and its counts on the suites of libonnx-testdata: as users run models, by the references, and
# by the references after a model was written and read back.
hone_test_tool(onnx_conformance onnx_conformance.c one_test.c run_plan.c)
set(suites /usr/share/libonnx-testdata/data)
if(EXISTS ${suites})
  foreach(engine plan eval saved)
    hone_ctest(conformance_${engine} onnx_conformance --engine ${engine} --at-least 1000 --quiet
      ${suites}/node ${suites}/simple ${suites}/pytorch-operator ${suites}/pytorch-converted)
  endforeach()
endif()
hone_portable(onnx_conformance)
