# check_tactics: every case through every tactic of its operator. check_pointwise: random programs. In builds with faults,
# each fault that the sources of these tactics contain must be noticed; the names come from the sources themselves.
hone_test_tool(check_tactics check_tactics.c tactic_case.c on_device.c with_epilogue.c)
hone_ctest(check_tactics check_tactics tests/tactics/cases.txt)
hone_test_tool(check_pointwise check_pointwise.c)
hone_ctest(check_pointwise check_pointwise)
hone_test_tool(check_chain check_chain.c)
hone_ctest(check_chain check_chain)

function(hone_tactic_faults)
  cmake_parse_arguments(arg "" "" "SOURCES;COMMAND" ${ARGN})
  foreach(source ${arg_SOURCES})
    file(READ ${CMAKE_SOURCE_DIR}/src/backends/cpu/${source}.c text)
    string(REGEX MATCHALL "HN_FAULT\\(\"[a-z0-9_]+\"\\)" faults "${text}")
    list(TRANSFORM faults REPLACE ".*\"([a-z0-9_]+)\".*" "\\1")
    foreach(fault ${faults})
      hone_ctest(tactics_catch_${fault} ${CMAKE_COMMAND} -E env HONE_FAULT=${fault} ${arg_COMMAND} --expect-failure)
    endforeach()
  endforeach()
endfunction()
if(HONE_FAULTS)
  hone_tactic_faults(COMMAND $<TARGET_FILE:check_tactics> tests/tactics/cases.txt SOURCES common/moves common/pooling
    common/reduction common/quantize_step common/qlinear_step common/softmax_step common/layer_norm common/resize_step tactics/batch_norm tactics/instance_norm
    tactics/gather)
  hone_tactic_faults(COMMAND $<TARGET_FILE:check_pointwise> SOURCES tactics/pointwise)
  hone_tactic_faults(COMMAND $<TARGET_FILE:check_chain> SOURCES common/chain_driver)
endif()
hone_portable(check_tactics check_pointwise)
hone_portable_files(tests/tactics tests/tactics/cases.txt)
