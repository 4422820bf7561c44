hone_test(test_load_numbers test_load_numbers.c)
hone_test(test_load test_load.c simulate.c)
hone_test_tool(load_schedule load_schedule.c)
hone_ctest(load_schedules sh ${CMAKE_CURRENT_SOURCE_DIR}/load/schedules.sh ${CMAKE_BINARY_DIR})
