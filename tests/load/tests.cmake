hone_test(test_load_schedule test_load_schedule.c)
hone_test(test_load_scenarios test_scenarios.c simulate.c)
hone_test_tool(load_schedule load_schedule.c)
hone_ctest(load_schedules sh ${CMAKE_CURRENT_SOURCE_DIR}/load/schedules.sh ${CMAKE_BINARY_DIR})
