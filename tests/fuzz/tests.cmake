# Fuzz targets (preset fuzz: clang, libFuzzer, ASan + UBSan); run by tools/fuzz.sh.
hone_fuzz(fuzz_onnx fuzz_onnx.c mutate_proto.c)
hone_fuzz(fuzz_tensor fuzz_tensor.c mutate_proto.c)
hone_fuzz(fuzz_facts fuzz_facts.c)
hone_fuzz(fuzz_text fuzz_text.c)
if(HONE_FUZZ)
  hone_test_tool(fuzz_seeds fuzz_seeds.c ../insight/sample.c)
  add_custom_target(fuzz_targets DEPENDS fuzz_onnx fuzz_tensor fuzz_facts fuzz_text fuzz_seeds)
endif()
