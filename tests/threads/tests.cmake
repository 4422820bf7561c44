# Networks on several threads: threads_NETWORK_PRECISION, with the other tests of what threads share (tests/CMakeLists.txt).
hone_test_tool(run_network run_network.c)
