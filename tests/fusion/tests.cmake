# check_fusion: graphs through lowering, against the reference plan. In builds with faults, each fault that the sources of
# fused steps contain must be noticed.
hone_test_tool(check_fusion check_fusion.c)
hone_ctest(check_fusion check_fusion tests/fusion/cases.txt)
hone_ctest(check_fusion_attention check_fusion tests/fusion/attention.txt)
hone_ctest(check_fusion_sight check_fusion tests/fusion/sight.txt)
hone_ctest(check_fusion_near check_fusion tests/fusion/near.txt)
if(HONE_FAULTS)
  foreach(source attention/attention_driver.c attention/attention_bf16.c attention/attention_lanes.c attention/attention_mixed.c
      attention/attention_sight.c attention/spelled_rotary.c kernels/attention/attention_bf16_avx512.c quantized/sums_step.c quantized/code_rows.c
      quantized/integer_pair.c elementwise/affine_codes.c)
    file(READ ${CMAKE_SOURCE_DIR}/src/backends/cpu/${source} text)
    string(REGEX MATCHALL "HN_FAULT\\(\"[a-z0-9_]+\"\\)" faults "${text}")
    list(TRANSFORM faults REPLACE ".*\"([a-z0-9_]+)\".*" "\\1")
    set(cases tests/fusion/cases.txt)
    if(source MATCHES "attention/")
      set(cases tests/fusion/sight.txt tests/fusion/attention.txt)
    endif()
    foreach(fault ${faults})
      hone_ctest(fusion_catches_${fault} ${CMAKE_COMMAND} -E env HONE_FAULT=${fault}
        $<TARGET_FILE:check_fusion> ${cases} --expect-failure)
    endforeach()
  endforeach()
  hone_ctest(fusion_catches_places_rounded ${CMAKE_COMMAND} -E env HONE_FAULT=places_rounded
    $<TARGET_FILE:check_fusion> tests/fusion/sight.txt --expect-failure)
endif()
hone_test(test_conditions test_conditions.c ../net.c)
hone_test(test_present test_present.c ../net.c)
