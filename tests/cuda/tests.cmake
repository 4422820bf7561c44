if(HONE_CUDA)
  hone_test(test_driver test_driver.c)
  target_compile_options(test_driver PRIVATE ${HONE_CUDA_OPTIONS})
  set_property(TEST test_driver APPEND PROPERTY ENVIRONMENT HONE_LIBCUDA=${CMAKE_BINARY_DIR}/tests/libfakecuda.so
    HONE_LIBNVRTC=${CMAKE_BINARY_DIR}/tests/libfakenvrtc.so)
endif()
