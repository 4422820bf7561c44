# Fuzz targets (preset fuzz: clang, libFuzzer, ASan + UBSan); run by tools/fuzz.sh.
hone_fuzz(fuzz_onnx fuzz_onnx.c mutate.c)
hone_fuzz(fuzz_tensor fuzz_tensor.c mutate.c)
hone_fuzz(fuzz_text fuzz_text.c)
hone_fuzz(fuzz_data fuzz_data.c)
if(HONE_FUZZ)
  hone_test_tool(fuzz_seeds fuzz_seeds.c seeds_data.c seeds_onnx.c ../onnx/good_models.c ../onnx/bad_models.c ../onnx/pb.c ../insight/sample.c ../cli/make_files.c)
  add_dependencies(fuzz_targets fuzz_seeds)
endif()
