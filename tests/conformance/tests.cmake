# The ONNX backend-test runner, and its counts on the suites of libonnx-testdata: as users run models, by the references, and
# by the references after a model was written and read back.
hone_test_tool(onnx_conformance onnx_conformance.c one_test.c run_plan.c run_twin.c)
set(suites /usr/share/libonnx-testdata/data)
# Its node leaves epsilon out, its expected values were made with 0.01; ONNX mended it in a later release.
set(doubted --doubted test_adam_multiple)
if(EXISTS ${suites})
  foreach(engine plan eval saved)
    hone_ctest(conformance_${engine} onnx_conformance --engine ${engine} --at-least 1000 --quiet ${doubted}
      ${suites}/node ${suites}/simple ${suites}/pytorch-operator ${suites}/pytorch-converted)
  endforeach()
  # What the other 30 of the package's 122 are not: run_twin.c says it of each.
  file(GLOB twins ${suites}/node/*_expanded)
  hone_ctest(conformance_twins onnx_conformance --engine twin --at-least 92 ${twins})
endif()
hone_portable(onnx_conformance)
