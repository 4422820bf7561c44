if(HONE_CUDA)
  hone_test(test_driver test_driver.c)
  target_compile_options(test_driver PRIVATE ${HONE_CUDA_OPTIONS})
  set_property(TEST test_driver APPEND PROPERTY ENVIRONMENT HONE_LIBCUDA=${CMAKE_BINARY_DIR}/tests/libfakecuda.so
    HONE_LIBNVRTC=${CMAKE_BINARY_DIR}/tests/libfakenvrtc.so)
# A driver and a compiler of device texts for machines without a GPU: docs/extending.md. They are built when
# CUDA's headers are there, as the backend is.
find_path(HONE_CUDA_HEADERS cuda.h HINTS ENV CUDA_PATH PATHS /usr/local/cuda PATH_SUFFIXES include)
if(HONE_CUDA_HEADERS AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  function(hone_fake name)
    set(sources ${ARGN})
    list(TRANSFORM sources PREPEND ${HONE_TEST_FOLDER}/)
    # Without sanitizers: its stacks are not those that they know.
    add_library(${name} SHARED ${sources})
    target_include_directories(${name} SYSTEM PRIVATE ${HONE_CUDA_HEADERS})
    target_compile_definitions(${name} PRIVATE _GNU_SOURCE HN_EMULATED_FOLDER="${HONE_TEST_FOLDER}"
      HN_EMULATED_CACHE="${CMAKE_BINARY_DIR}/tests/emulated")
    target_compile_options(${name} PRIVATE -Wall -Wextra -Werror -O2 -fno-math-errno)
    target_link_libraries(${name} PRIVATE Threads::Threads m ${CMAKE_DL_LIBS})
    set_target_properties(${name} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  endfunction()
  hone_fake(fakecuda fake_cuda.c fake_queue.c fake_memory.c fake_fail.c fibers.c collectives.c)
  hone_fake(fakenvrtc fake_nvrtc.c fake_fail.c)
  set(HONE_FAKE_ENVIRONMENT HONE_LIBCUDA=$<TARGET_FILE:fakecuda> HONE_LIBNVRTC=$<TARGET_FILE:fakenvrtc>
    HONE_KERNEL_CACHE=off HONE_TUNE_CACHE=off)

  hone_test(test_emulated test_emulated.c)
  add_dependencies(test_emulated fakecuda fakenvrtc)
  target_include_directories(test_emulated SYSTEM PRIVATE ${HONE_CUDA_HEADERS})
  target_compile_definitions(test_emulated PRIVATE FAKE_CUDA="$<TARGET_FILE:fakecuda>" FAKE_NVRTC="$<TARGET_FILE:fakenvrtc>")
endif()
