# check_tactics: every case through every tactic of its operator; and pointwise programs of all shapes.
hone_test_tool(check_tactics check_tactics.c)
hone_ctest(check_tactics check_tactics tests/tactics/cases.txt)
if(HONE_FAULTS)
  foreach(fault move_last_chunk)
    hone_ctest(check_tactics_catches_${fault} ${CMAKE_COMMAND} -E env HONE_FAULT=${fault}
      $<TARGET_FILE:check_tactics> tests/tactics/cases.txt --expect-failure)
  endforeach()
endif()
hone_test_tool(check_pointwise check_pointwise.c)
hone_ctest(check_pointwise check_pointwise)
