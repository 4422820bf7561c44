# The ONNX backend-test runner, and its counts on the suites of libonnx-testdata.
hone_test_tool(onnx_conformance onnx_conformance.c one_test.c run_plan.c)
hone_ctest(onnx_conformance ${CMAKE_COMMAND} -E env $<TARGET_FILE:onnx_conformance> --at-least 0
  /usr/share/libonnx-testdata/data/node /usr/share/libonnx-testdata/data/simple
  /usr/share/libonnx-testdata/data/pytorch-operator /usr/share/libonnx-testdata/data/pytorch-converted)
