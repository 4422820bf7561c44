# A driver and a compiler of device texts for machines without a GPU (docs/develop/extending.md), and what they test.
if(HONE_CUDA AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  function(hone_fake name)
    set(sources ${ARGN})
    list(TRANSFORM sources PREPEND ${HONE_TEST_FOLDER}/)
    # Without sanitizers: its stacks are not those that they know.
    add_library(${name} SHARED ${sources})
    target_compile_options(${name} PRIVATE -Wall -Wextra -Werror -O2 -fno-math-errno ${HONE_CUDA_OPTIONS})
    target_compile_definitions(${name} PRIVATE _GNU_SOURCE HN_EMULATED_FOLDER="${HONE_TEST_FOLDER}"
      HN_EMULATED_CACHE="${CMAKE_SOURCE_DIR}/.cache/emulated")
    target_link_libraries(${name} PRIVATE Threads::Threads m ${CMAKE_DL_LIBS})
    set_target_properties(${name} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  endfunction()
  hone_fake(fakecuda fake_cuda.c fake_queue.c fake_memory.c fake_fail.c fibers.c collectives.c)
  set_source_files_properties(${HONE_TEST_FOLDER}/collectives.c PROPERTIES COMPILE_OPTIONS -O3) # a third of what texts with mma take
  hone_fake(fakenvrtc fake_nvrtc.c fake_fail.c)
  set(HONE_EMULATED HONE_LIBCUDA=${CMAKE_BINARY_DIR}/tests/libfakecuda.so
    HONE_LIBNVRTC=${CMAKE_BINARY_DIR}/tests/libfakenvrtc.so HONE_KERNEL_CACHE=off
    HONE_LIBCUPTI=none HONE_LIBNVML=none) # they need a GPU that is one
  # cuDNN and cuBLASLt on the fake driver; without them no library is found, whatever this machine has.
  foreach(library CUDNN CUBLASLT)
    string(TOLOWER ${library} file)
    if(HONE_${library}_INCLUDE)
      hone_fake(fake${file} fake_${file}.c)
      target_link_libraries(fake${file} PRIVATE fakecuda)
      list(APPEND HONE_EMULATED HONE_LIB${library}=${CMAKE_BINARY_DIR}/tests/libfake${file}.so)
    else()
      list(APPEND HONE_EMULATED HONE_LIB${library}=none)
    endif()
  endforeach()

  # hone_emulated(NAME COMMAND...): a test whose GPU is emulated. What compiles texts for long is cut down here (--thin: every case and
  # every tactic, but not each in all variants; --shard; --programs); all of it runs in `make test-emulated` and, on a GPU, in `make test-gpu`.
  function(hone_emulated name)
    hone_ctest(${name} ${ARGN})
    set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT ${HONE_EMULATED})
    set_property(TEST ${name} APPEND PROPERTY LABELS emulated)
  endfunction()

  hone_test(test_driver test_driver.c driver_rig.c)
  hone_test(test_driver_failures test_driver_failures.c driver_rig.c)
  hone_test(test_emulated test_emulated.c)
  foreach(name test_driver test_driver_failures test_emulated)
    add_dependencies(${name} fakecuda fakenvrtc)
    target_compile_options(${name} PRIVATE ${HONE_CUDA_OPTIONS})
    set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT ${HONE_EMULATED})
  endforeach()
  target_compile_definitions(test_emulated PRIVATE FAKE_CUDA="${CMAKE_BINARY_DIR}/tests/libfakecuda.so"
    FAKE_NVRTC="${CMAKE_BINARY_DIR}/tests/libfakenvrtc.so")

  hone_test(test_transfer test_transfer.c ../net.c)
  add_dependencies(test_transfer fakecuda fakenvrtc)
  set_property(TEST test_transfer APPEND PROPERTY ENVIRONMENT ${HONE_EMULATED})

  hone_test(test_generate_faults ../serve/test_generate_faults.c ../serve/generate_net.c ../serve/decoder.c
    ../serve/decoder_own.c ../net.c)
  add_dependencies(test_generate_faults fakecuda fakenvrtc)
  set_property(TEST test_generate_faults APPEND PROPERTY ENVIRONMENT ${HONE_EMULATED})
  set_property(TEST test_generate_faults APPEND PROPERTY LABELS emulated)

  # A Hopper: its chains exist nowhere else. Their texts are recorded, not compiled.
  hone_test(test_chain_weights test_chain_weights.c ../net.c)
  add_dependencies(test_chain_weights fakecuda fakenvrtc)
  set_property(TEST test_chain_weights APPEND PROPERTY ENVIRONMENT ${HONE_EMULATED} HONE_FAKE_ARCH=90
    HONE_FAKE_RECORD=${CMAKE_BINARY_DIR}/tests/texts/chain)

  # A Hopper that only records.
  hone_test(test_parts test_parts.c ../net.c)
  add_dependencies(test_parts fakecuda fakenvrtc)
  set_property(TEST test_parts APPEND PROPERTY ENVIRONMENT ${HONE_EMULATED} HONE_FAKE_ARCH=90
    HONE_FAKE_RECORD=${CMAKE_BINARY_DIR}/tests/texts/parts)

  # A Hopper whose clusters are emulated.
  hone_test(test_squeeze test_squeeze.c ../net.c)
  add_dependencies(test_squeeze fakecuda fakenvrtc)
  set_property(TEST test_squeeze APPEND PROPERTY ENVIRONMENT ${HONE_EMULATED} HONE_FAKE_ARCH=90)

  hone_test_tool(check_attention check_attention.c)
  add_dependencies(check_attention fakecuda fakenvrtc)
  hone_emulated(check_attention check_attention)
  if(NOT HONE_SANITIZE)
    hone_emulated(check_pointwise_cuda check_pointwise --device cuda --programs 50)
  endif()
  # Pools as they are without the emulator, where blocks lie side by side.
  hone_emulated(pool_on_gpu test_pool cuda)
  set_property(TEST pool_on_gpu APPEND PROPERTY ENVIRONMENT HONE_POOL=shared)
  hone_emulated(serve_on_gpu test_serve cuda)
  hone_emulated(weights_on_gpu test_weights cuda)
  if(HONE_FAULTS)
    hone_emulated(weights_on_gpu_catches_cuda_shared_way test_weights cuda)
    set_property(TEST weights_on_gpu_catches_cuda_shared_way APPEND PROPERTY ENVIRONMENT HONE_FAULT=cuda_shared_way)
    set_tests_properties(weights_on_gpu_catches_cuda_shared_way PROPERTIES PASS_REGULAR_EXPRESSION "FAILED  . test_ways")
  endif()
  hone_emulated(generate_on_gpu test_generate cuda together_is_alone)
  foreach(part captured_work_is_kept joined_caches_may_have_holes a_hole_is_empty caches_may_be_written_at_an_index faults_are_seen)
    hone_emulated(generate_on_gpu_${part} test_generate cuda ${part})
  endforeach()
  hone_emulated(generate_on_gpu_holes test_generate_models cuda holes_that_are_seen_are_refused)
  hone_emulated(pipeline_on_gpu sh ${CMAKE_SOURCE_DIR}/tests/pipeline/on_gpu.sh ${CMAKE_BINARY_DIR} ${CMAKE_SOURCE_DIR})
  hone_test_tool(check_late check_late.c)
  add_dependencies(check_late fakecuda fakenvrtc)
  hone_emulated(check_late check_late)
  if(HONE_FAULTS)
    foreach(fault cuda_group_query_sink cuda_group_query_window)
      hone_emulated(check_cuda_tactics_catches_${fault} check_tactics tests/tactics/cases/attention.txt --device cuda --filter GroupQuery
        --expect-failure)
      set_property(TEST check_cuda_tactics_catches_${fault} APPEND PROPERTY ENVIRONMENT HONE_FAULT=${fault})
    endforeach()
    hone_emulated(check_cuda_tactics_catches_cuda_tensor_scatter_axis check_tactics tests/cuda/cases.txt --device cuda
      --filter TensorScatter --expect-failure)
    set_property(TEST check_cuda_tactics_catches_cuda_tensor_scatter_axis APPEND PROPERTY ENVIRONMENT
      HONE_FAULT=cuda_tensor_scatter_axis)
    foreach(fault counts_one_by_one counts_not_waited)
      hone_emulated(check_late_catches_${fault} check_late "two classes")
      set_property(TEST check_late_catches_${fault} APPEND PROPERTY ENVIRONMENT HONE_FAULT=${fault})
      set_tests_properties(check_late_catches_${fault} PROPERTIES WILL_FAIL TRUE)
    endforeach()
  endif()
  if(HONE_FAULTS)
    foreach(fault nbits_quad nbits_column blob_left_dirty)
      hone_emulated(tactics_catch_${fault} check_tactics tests/tactics/cases/product.txt --device cuda --thin --filter MatMulNBits
        --tactic nbits_mma_8x32 --expect-failure)
      set_property(TEST tactics_catch_${fault} APPEND PROPERTY ENVIRONMENT HONE_FAULT=${fault})
    endforeach()
  endif()
  hone_test(test_narrow_images test_narrow_images.c ../net.c)
  add_dependencies(test_narrow_images fakecuda fakenvrtc)
  set_property(TEST test_narrow_images APPEND PROPERTY ENVIRONMENT ${HONE_EMULATED})
  hone_test(test_concat_cuda test_concat_cuda.c ../net.c)
  add_dependencies(test_concat_cuda fakecuda fakenvrtc)
  set_property(TEST test_concat_cuda APPEND PROPERTY ENVIRONMENT ${HONE_EMULATED})
  hone_test_tool(check_timed check_timed.c)
  add_dependencies(check_timed fakecuda fakenvrtc)
  hone_emulated(check_timed check_timed)
  hone_test_tool(check_quantised check_quantised.c)
  add_dependencies(check_quantised fakecuda fakenvrtc)
  hone_emulated(check_quantised check_quantised)
  hone_test_tool(check_codes check_codes.c ../tactics/device_step.c)
  add_dependencies(check_codes fakecuda fakenvrtc)
  # Of the tiles of one text a plain one, one of few rows that divides K, and one that divides it in two; all of them run in test-gpu and
  # test-emulated.
  set(few)
  foreach(kind conv conv_add conv_table gemm matmul matmul_add matmul_table)
    list(APPEND few -int8_${kind}_mma* int8_${kind}_mma_64x64 int8_${kind}_mma_16x64_k4 int8_${kind}_mma_32x32_k2)
  endforeach()
  list(JOIN few , few)
  hone_emulated(check_codes check_codes --tactic ${few})
  # Tactics of libraries, on the fake ones; those of device texts are check_texts' matter and the emulator's.
  # Under sanitizers alone: what they compute is the fake libraries' in every build.
  if(HONE_CUDNN_INCLUDE AND HONE_CUBLASLT_INCLUDE AND HONE_SANITIZE)
    hone_emulated(check_tactics_libraries check_tactics tests/tactics/cases --device cuda --thin --tactic cu*)
  endif()
  if(HONE_CUBLASLT_INCLUDE)
    hone_test_tool(check_fp8 check_fp8.c ../tactics/device_step.c)
    add_dependencies(check_fp8 fakecuda fakenvrtc)
    hone_emulated(check_fp8 check_fp8)
    hone_emulated(fp8_on_gpu sh ${HONE_TEST_FOLDER}/fp8.sh ${CMAKE_BINARY_DIR}/hone)
    # Sanitizers have seen the library's tactics above, and e4m3 in the other two.
    if(NOT HONE_SANITIZE)
      hone_emulated(check_tactics_fp8 check_tactics tests/tactics/cases tests/cuda/cases.txt --device cuda --thin
        --tactic cublaslt_fp8*)
    endif()
    foreach(name check_fp8 fp8_on_gpu check_tactics_fp8)
      if(TEST ${name})
        set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT HONE_FAKE_ARCH=89)
      endif()
    endforeach()
    hone_portable(check_fp8)
  endif()
  if(HONE_CUPTI_INCLUDE)
    hone_fake(fakecupti fake_cupti.c fake_counters.c)
    target_include_directories(fakecupti PRIVATE ${CMAKE_SOURCE_DIR}/tests ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/include)
    hone_test(test_trace test_trace.c)
    add_dependencies(test_trace fakecuda fakenvrtc fakecupti)
    target_compile_options(test_trace PRIVATE ${HONE_CUDA_OPTIONS})
    target_compile_definitions(test_trace PRIVATE FAKE_CUPTI="${CMAKE_BINARY_DIR}/tests/libfakecupti.so")
    set_property(TEST test_trace APPEND PROPERTY ENVIRONMENT ${HONE_EMULATED}
      HONE_LIBCUPTI=${CMAKE_BINARY_DIR}/tests/libfakecupti.so)
    hone_test(test_counters_cuda test_counters_cuda.c ../net.c)
    add_dependencies(test_counters_cuda fakecuda fakenvrtc fakecupti)
    hone_emulated(filter_on_gpu sh ${HONE_TEST_FOLDER}/counters.sh ${CMAKE_BINARY_DIR}/hone)
    foreach(name test_counters_cuda filter_on_gpu)
      set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT ${HONE_EMULATED} HONE_LIBCUPTI=${CMAKE_BINARY_DIR}/tests/libfakecupti.so)
    endforeach()
  endif()

  # Profiles, demos and the time of copies on a GPU, with small networks.
  hone_emulated(profile_on_gpu sh ${HONE_TEST_FOLDER}/profile.sh ${CMAKE_BINARY_DIR}/hone zoo:many_inputs)
  hone_emulated(precision_on_gpu sh ${HONE_TEST_FOLDER}/precision.sh ${CMAKE_BINARY_DIR}/hone)
  hone_emulated(tune_on_gpu sh ${HONE_TEST_FOLDER}/tune.sh ${CMAKE_BINARY_DIR}/hone)
  # An attention mask of the largest integers is infinite in f16, and no answer is right.
  hone_emulated(verify_masks_on_gpu sh -c
    "\"$0\" zoo bert_base --width 0.17 --size 12 -o \"$TMPDIR/masks.onnx\" && \"$0\" verify \"$TMPDIR/masks.onnx\" --precision fp16 --device cuda -n 8"
    ${CMAKE_BINARY_DIR}/hone)
  if(HONE_CUDNN_INCLUDE)
    # On Hopper the fake cuDNN refuses what may begin before the kernel in front of it has ended.
    hone_emulated(cudnn_in_order sh -c
      "\"$0\" zoo resnet50 --width 0.125 --size 32 -o \"$TMPDIR/order.onnx\" && \"$0\" bench \"$TMPDIR/order.onnx\" --precision fp16 --device cuda -n 3"
      ${CMAKE_BINARY_DIR}/hone)
    set_property(TEST cudnn_in_order APPEND PROPERTY ENVIRONMENT HONE_FAKE_ARCH=90
      "HONE_TACTICS=-*wgmma*,-conv_turned*,-conv_mma*,-conv_few*,-conv_simt*,-conv_direct*,-conv_image*,-conv_chain*,-cublaslt*")
    hone_emulated(kept_on_gpu sh ${HONE_TEST_FOLDER}/kept.sh ${CMAKE_BINARY_DIR}/hone)
  endif()
  hone_emulated(int8_roof_on_gpu sh ${HONE_TEST_FOLDER}/int8_roof.sh ${CMAKE_BINARY_DIR}/hone)
  hone_emulated(demo_merged_copies ${CMAKE_BINARY_DIR}/hone demo merged-copies --device cuda -n 3)
  # A narrow one: the demo's own network takes the emulator a minute.
  hone_emulated(demo_int8_on_gpu sh tests/cli/says.sh "^mixed .*x$" "not measured" sh -c
    "\"$0\" zoo mobilenetv2 --width 0.25 --size 32 -o \"$TMPDIR/narrow.onnx\" && \"$0\" demo int8 \"$TMPDIR/narrow.onnx\" --device cuda -b 2 -n 2"
    ${CMAKE_BINARY_DIR}/hone)

  # Device texts as tactics give them (cases and networks on a GPU that only records), through the real NVRTC.
  hone_test_tool(check_texts check_texts.c)
  target_compile_options(check_texts PRIVATE ${HONE_CUDA_OPTIONS})
  # What runs for minutes is left to the plain build: the code that sanitizers see is that of the networks below.
  if(HONE_SANITIZE)
    set(archs)
  else()
    set(archs 80 90)
  endif()
  foreach(arch ${archs})
    set(folder ${CMAKE_BINARY_DIR}/tests/texts/${arch})
    hone_emulated(record_texts_${arch} ${HONE_TEST_FOLDER}/record_texts.sh ${CMAKE_BINARY_DIR} ${folder})
    set_property(TEST record_texts_${arch} APPEND PROPERTY ENVIRONMENT HONE_FAKE_ARCH=${arch} HONE_FAKE_RECORD=${folder})
    set_tests_properties(record_texts_${arch} PROPERTIES FIXTURES_SETUP texts_${arch})
    string(REPLACE 90 90a target sm_${arch})
    # The same texts but for what is Hopper's: fewer of them for sm_80.
    set(most 3)
    if(arch EQUAL 80)
      set(most 1)
    endif()
    hone_ctest(check_texts_${target} check_texts ${folder} ${target} --most ${most} --jobs 1)
    set_property(TEST check_texts_${target} APPEND PROPERTY LABELS emulated)
    set_tests_properties(check_texts_${target} PROPERTIES FIXTURES_REQUIRED texts_${arch})
  endforeach()
  hone_portable(test_driver test_driver_failures test_transfer check_attention check_late check_quantised check_codes)
  hone_ctest(test_gpu_record sh ${HONE_TEST_FOLDER}/test_gpu_record.sh ${CMAKE_SOURCE_DIR})
  hone_ctest(cuda_faults sh ${HONE_TEST_FOLDER}/faults.sh ${CMAKE_BINARY_DIR})
  hone_emulated(check_cuda_tactics check_tactics tests/cuda/cases.txt --device cuda --thin --tactic -cu*,-conv*,-gemm*,-matmul*)
  # A part of the odd sizes.
  hone_emulated(check_kernels_cuda check_kernels --device cuda --tactic -cu*,-conv*,-gemm*,-matmul* --shard 0/8)
  hone_emulated(check_kernels_cuda_products check_kernels --device cuda --shard 5/64
    --tactic conv_mma_64x64,conv_simt_64x64,conv_image,conv_direct,conv_transpose,gemm_mma_64x64,matmul_mma_64x64)
  # What no case reaches has never been run by a test: asked on a GPU that could run everything.
  if(HONE_CUDNN_INCLUDE AND HONE_CUBLASLT_INCLUDE AND NOT HONE_SANITIZE)
    hone_emulated(tactics_reached check_tactics tests/tactics/cases tests/cuda/cases.txt --device cuda --coverage)
    set_property(TEST tactics_reached APPEND PROPERTY ENVIRONMENT HONE_FAKE_ARCH=90)
  endif()

  # Cases, ONNX's own tests and whole networks on the emulated GPU.
  set(check check_tactics tests/tactics/cases --device cuda --thin --tactic) # in parts, as hundreds of texts are compiled
  if(NOT HONE_SANITIZE)
    # Of the tiles of one text a plain one, one that divides K, and the exact one; all of them run in test-gpu.
    hone_emulated(check_tactics_cuda_conv ${check}
      conv_mma_64x64,conv_mma_16x64_k4,conv_simt_64x64,conv_image,conv_direct*,conv_transpose*)
    hone_emulated(check_tactics_cuda_products ${check}
      gemm_mma_64x64,gemm_mma_16x64_k4,gemm_simt_64x64,matmul_mma_64x64,matmul_mma_16x64_k4,matmul_simt_64x64)
    hone_emulated(check_tactics_cuda_others ${check} -cu*,-conv*,-gemm*,-matmul*)
    hone_test_tool(check_host_steps check_host_steps.c)
    hone_emulated(check_host_steps check_host_steps)
  endif()
  hone_test_tool(check_networks check_networks.c)
  hone_portable(check_networks)
  foreach(precision f32 tf32 fp16 bf16)
    hone_emulated(network_resnet50_${precision} check_networks resnet50 0.25 32 ${precision})
    hone_emulated(network_mobilenetv2_${precision} check_networks mobilenetv2 0.35 48 ${precision})
    hone_emulated(network_yolov3_${precision} check_networks yolov3 0.125 64 ${precision} --batch 1 --parts 2)
    hone_emulated(network_bert_base_${precision} check_networks bert_base 0.17 12 ${precision} --on-host 0)
    foreach(network resnet50 mobilenetv2 yolov3 bert_base)
      set_property(TEST network_${network}_${precision} APPEND PROPERTY ENVIRONMENT HONE_TACTICS=-cudnn*,-cublaslt*)
    endforeach()
  endforeach()
  # bert_base's pooled output lies by a step of bf16 below or above the bound, as sums before it round: in that network the order of
  # sums stays what the bound was found with. check_tactics_cuda_products holds the products of few rows to theirs.
  set_property(TEST network_bert_base_bf16 APPEND PROPERTY ENVIRONMENT HONE_TACTICS=-cudnn*,-cublaslt*,-matmul_few*)
  # As Turing's, on a newer GPU, which compiles its PTX.
  hone_emulated(network_for_turing check_networks resnet50 0.25 32 fp16)
  set_property(TEST network_for_turing APPEND PROPERTY ENVIRONMENT HONE_TACTICS=-cudnn*,-cublaslt* HONE_FAKE_ARCH=90 HONE_CUDA_ARCH=sm_75)
  if(NOT HONE_SANITIZE)
    hone_emulated(texts_of_turing ${HONE_TEST_FOLDER}/texts_of_turing.sh ${CMAKE_BINARY_DIR} ${CMAKE_BINARY_DIR}/tests/texts/75)
  endif()
  set(suites /usr/share/libonnx-testdata/data)
  if(EXISTS ${suites} AND NOT HONE_SANITIZE)
    # On the host: strings, bodies, optimizers, the draws of Dropout in training (4), and what computes with sequences and optionals
    hone_emulated(conformance_cuda onnx_conformance --engine cuda --at-least 1000 --on-host 66 --quiet ${doubted}
      ${suites}/node ${suites}/simple ${suites}/pytorch-operator ${suites}/pytorch-converted)
  endif()
endif()
