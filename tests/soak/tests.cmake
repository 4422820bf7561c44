hone_test_tool(soak soak.c)
# The seeds of a test are always the same; `make soak` draws them.
hone_ctest(soak_operations soak 2 1)
set(pictures 400)
if(HONE_SANITIZE MATCHES thread) # thirty times as long each, and as many ends
  set(pictures 120)
endif()
hone_ctest(soak_pictures soak pictures ${pictures} 10)
