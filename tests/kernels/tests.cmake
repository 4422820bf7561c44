# check_kernels: the harness, the measured roofs, and one adapter for every family in families.def.
hone_def_names(families src/backends/cpu/families.def FAMILY)
list(TRANSFORM families REPLACE "(.+)" "family_\\1.c" OUTPUT_VARIABLE adapters)
# Sanitizers watch the kernels and their drivers; the adapters' sums in f64 would take most of the time. What adapters allocate
# has its bounds all the same.
if(HONE_SANITIZE)
  list(TRANSFORM adapters PREPEND ${HONE_TEST_FOLDER}/ OUTPUT_VARIABLE files)
  list(APPEND files ${HONE_TEST_FOLDER}/check.c ${HONE_TEST_FOLDER}/conv_oracle.c ${HONE_TEST_FOLDER}/gemm_bf16_conv.c ${HONE_TEST_FOLDER}/gemm_matmul.c ${HONE_TEST_FOLDER}/strassen_product.c)
  set_source_files_properties(${files} PROPERTIES COMPILE_OPTIONS "-O2;-fno-sanitize=all")
endif()
# Odd sizes for an accelerator's tactics are part of the program, which runs alone on other machines.
set(shapes tests/cuda/shapes.txt)
set_property(DIRECTORY ${CMAKE_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${shapes})
file(READ ${CMAKE_SOURCE_DIR}/${shapes} text)
string(REPLACE "\n" "\\n\"\n\"" text "${text}")
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/generated/device_shapes.c CONTENT "extern const char ck_device_shapes[];\nconst char ck_device_shapes[] =\n\"@text@\";\n" @ONLY)
hone_test_tool(check_kernels check_kernels.c check.c bench.c roof.c conv_cases.c conv_oracle.c gemm_matmul.c strassen_product.c gemm_bf16_conv.c
  ../tactics/on_device.c ../tactics/device_step.c ../tactics/tactic_case.c ../tactics/with_epilogue.c ../tactics/chain_case.c ${adapters})
target_sources(check_kernels PRIVATE ${CMAKE_BINARY_DIR}/generated/device_shapes.c)
hone_portable(check_kernels)
target_include_directories(check_kernels PRIVATE ${HONE_TEST_FOLDER})
if(HONE_SANITIZE)
  hone_ctest(check_kernels check_kernels --fills 2)
else()
  hone_ctest(check_kernels check_kernels)
endif()

# Every fault compiled into a kernel, or into a driver that the adapters run, must be noticed by the family's adapter.
# The names come from the sources themselves.
function(hone_kernel_faults family)
  set(found)
  foreach(source ${ARGN})
    file(READ ${source} text)
    string(REGEX MATCHALL "HN_FAULT\\(\"[a-z0-9_]+\"\\)" faults "${text}")
    list(TRANSFORM faults REPLACE ".*\"([a-z0-9_]+)\".*" "\\1")
    list(APPEND found ${faults})
  endforeach()
  list(REMOVE_DUPLICATES found) # kernels of one family may share a fault
  foreach(fault ${found})
    hone_ctest(check_kernels_catches_${fault} ${CMAKE_COMMAND} -E env HONE_FAULT=${fault}
      $<TARGET_FILE:check_kernels> --filter ${family} --expect-failure)
  endforeach()
endfunction()
if(HONE_FAULTS)
  set(cpu ${CMAKE_SOURCE_DIR}/src/backends/cpu)
  foreach(family ${families})
    file(GLOB sources CONFIGURE_DEPENDS ${cpu}/kernels/${family}/*)
    hone_kernel_faults(${family} ${sources})
  endforeach()
  hone_kernel_faults(gemm ${cpu}/product/gemm_pack.c ${cpu}/product/conv_plan.c ${cpu}/product/conv_rows.c ${cpu}/product/conv_driver.c
    ${cpu}/product/matmul_driver.c
    ${cpu}/step/epilogue.c)
  hone_kernel_faults(strassen ${cpu}/product/strassen_driver.c)
  hone_kernel_faults(depthwise ${cpu}/conv/depthwise_driver.c)
  hone_kernel_faults(grouped ${cpu}/conv/grouped_direct.c)
  hone_kernel_faults(dots ${cpu}/conv/dots_driver.c)
  hone_kernel_faults(planes ${cpu}/conv/planes_driver.c)
  hone_kernel_faults(gemm_bf16 ${cpu}/product/bf16_pack.c ${cpu}/product/bf16_driver.c ${cpu}/product/bf16_again.c)
  hone_kernel_faults(winograd ${cpu}/conv/winograd_driver.c)
  hone_kernel_faults(gemm_int8 ${cpu}/quantized/int8_driver.c ${cpu}/quantized/int8_rows.c)
  hone_kernel_faults(depthwise_int8 ${cpu}/quantized/depthwise_int8_driver.c ${cpu}/kernels.c)
endif()

hone_test_tool(check_products check_products.c)
hone_ctest(check_products check_products)
