hone_test_tool(soak soak.c)
# The seeds of a test are always the same; `make soak` draws them.
hone_ctest(soak_operations soak 2 1)
hone_ctest(soak_pictures soak pictures 400 10)
