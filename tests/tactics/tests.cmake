# check_tactics: every case through every tactic of its operator. check_pointwise: random programs. In builds with faults,
# each fault that the sources of these tactics contain must be noticed; the names come from the sources themselves.
# Sanitizers watch tactics and what is under them; these tools' own loops over elements, which are most of what they run, would take
# the time.
if(HONE_SANITIZE)
  set(files check_tactics tactic_case on_device device_step with_epilogue chain_case check_pointwise check_chain)
  list(TRANSFORM files REPLACE "(.+)" "${HONE_TEST_FOLDER}/\\1.c")
  set_source_files_properties(${files} PROPERTIES COMPILE_OPTIONS "-O2;-fno-sanitize=all")
  set(watches HN_WATCHES_MEMORY)
  if(HONE_SANITIZE MATCHES thread)
    set(watches HN_WATCHES_THREADS)
  endif()
  set_source_files_properties(${HONE_TEST_FOLDER}/check_tactics.c ${HONE_TEST_FOLDER}/check_chain.c PROPERTIES COMPILE_DEFINITIONS ${watches})
endif()
hone_test_tool(check_tactics check_tactics.c blobs.c tactic_case.c on_device.c device_step.c with_epilogue.c chain_case.c)
hone_ctest(check_tactics check_tactics tests/tactics/cases)
# Holes in structures are the compiler's, with sanitizers other ones.
if(NOT HONE_SANITIZE)
  hone_ctest(tactics_packed check_tactics tests/tactics/blobs.txt --blobs tests/tactics/blobs.golden)
  hone_ctest(tactics_packed_catches sh -c "sed 's/^\\(gemm_tiles .*\\).\$/\\1x/' tests/tactics/blobs.golden >\"$TMPDIR/golden\" && \
    \"$0\" tests/tactics/blobs.txt --blobs \"$TMPDIR/golden\" | grep 'FAIL gemm_tiles on .*: raise it'" ${CMAKE_BINARY_DIR}/check_tactics)
  hone_ctest(tactics_packed_misses sh -c "(cat tests/tactics/blobs.golden && echo gone 1 scalar 0) >\"$TMPDIR/golden\" && \
    \"$0\" tests/tactics/blobs.txt --blobs \"$TMPDIR/golden\" | grep 'FAIL gone on scalar'" ${CMAKE_BINARY_DIR}/check_tactics)
endif()
hone_test_tool(check_pointwise check_pointwise.c device_step.c)
hone_ctest(check_pointwise check_pointwise)
hone_test_tool(check_chain check_chain.c)
hone_ctest(check_chain check_chain)
hone_test_tool(check_team check_team.c)
hone_ctest(check_team check_team)

# hone_tactic_faults(SOURCES FAMILY/FILE[=TEXT]... COMMAND...): CASES, among the command's words, is the family's file of cases; TEXT: only
# those whose line has it.
function(hone_tactic_faults)
  cmake_parse_arguments(arg "" "" "SOURCES;COMMAND" ${ARGN})
  foreach(source ${arg_SOURCES})
    string(REGEX MATCH "^([a-z]+)/([a-z0-9_]+)(=(.+))?$" source ${source})
    set(family ${CMAKE_MATCH_1})
    set(filter)
    if(CMAKE_MATCH_4)
      set(filter --filter ${CMAKE_MATCH_4})
    endif()
    file(READ ${CMAKE_SOURCE_DIR}/src/backends/cpu/${family}/${CMAKE_MATCH_2}.c text)
    list(TRANSFORM arg_COMMAND REPLACE "^CASES$" tests/tactics/cases/${family}.txt OUTPUT_VARIABLE command)
    string(REGEX MATCHALL "HN_FAULT\\(\"[a-z0-9_]+\"\\)" faults "${text}")
    list(TRANSFORM faults REPLACE ".*\"([a-z0-9_]+)\".*" "\\1")
    list(REMOVE_DUPLICATES faults) # one fault may be planted at two places
    foreach(fault ${faults})
      if(TEST tactics_catch_${fault}) # or in two files
        continue()
      endif()
      hone_ctest(tactics_catch_${fault} ${CMAKE_COMMAND} -E env HONE_FAULT=${fault} ${command} ${filter} --expect-failure)
    endforeach()
  endforeach()
endfunction()
if(HONE_FAULTS)
  hone_tactic_faults(COMMAND $<TARGET_FILE:check_tactics> CASES SOURCES movement/moves pooling/pooling
    normalize/reduction quantized/quantize_step=QuantizeLinear quantized/qlinear_step=QLinear normalize/softmax_step=Softmax
    normalize/layer_norm=Normalization sampling/resize_step=Resize sampling/resample_step=Resize normalize/batch_norm=BatchNormalization
    normalize/instance_norm=InstanceNormalization normalize/lrn=LRN movement/gather=Gather movement/gather_elements=GatherElements
    movement/gather_nd=GatherND movement/scatter_elements=ScatterElements movement/scatter_nd=ScatterND
    recurrent/recurrent_driver=hidden_size recurrent/byte_rows=DynamicQuantizeLSTM elementwise/cast=Cast elementwise/cast_numbers=Cast
    quantized/dynamic_quantize=DynamicQuantizeLinear attention/group_query_attention=com.microsoft attention/paged_attention=PagedAttention
    normalize/embed_layer_norm=com.microsoft attention/rotary_embedding=RotaryEmbedding attention/m_rotary_embedding=MRotary attention/linear_attention=@27 attention/gated_delta_net=GatedDeltaNet
    conv/causal_conv=@27 conv/grouped_driver=group sampling/points=com.microsoft sampling/grid_sample_step=GridSample
    sampling/crop_and_resize=CropAndResize sampling/roi_align=RoiAlign matrix/inverse=Inverse
    classical/trees_step=TreeEnsemble product/coded_step=MatMulNBits product/coded_tiles=MatMulNBits
    product/experts_step=MoE product/moe=com.microsoft.MoE product/q_moe=QMoE signal/dft=DFT normalize/cum_sum=CumSum classical/tf_idf=TfIdf normalize/arg=ArgM
    product/matmul_small=MatMul product/matmul_direct=MatMul product/matmul_wide=MatMul)
  hone_tactic_faults(COMMAND $<TARGET_FILE:check_pointwise> SOURCES elementwise/pointwise elementwise/truths elementwise/expand)
  hone_tactic_faults(COMMAND $<TARGET_FILE:check_chain> SOURCES conv/chain_driver conv/chain_parts)
endif()
hone_portable(check_tactics check_pointwise)
file(GLOB cases CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR} ${HONE_TEST_FOLDER}/cases/*.txt)
hone_portable_files(tests/tactics/cases ${cases})
hone_portable_files(tests/cuda tests/cuda/cases.txt)
