# A library with sanitizers cannot be linked by a program without; the packages are the release build's.
if(NOT HONE_SANITIZE AND NOT HONE_FUZZ AND NOT HONE_PORTABLE)
  hone_ctest(package_install sh ${CMAKE_CURRENT_LIST_DIR}/install.sh ${CMAKE_BINARY_DIR} ${CMAKE_SOURCE_DIR})
  set_tests_properties(package_install PROPERTIES RESOURCE_LOCK install_manifest) # plugins_package writes it, too
  if(CMAKE_BUILD_TYPE STREQUAL Release)
    hone_ctest(package_debian sh ${CMAKE_CURRENT_LIST_DIR}/debian.sh ${CMAKE_BINARY_DIR} ${CMAKE_SOURCE_DIR})
    hone_ctest(package_action sh ${CMAKE_CURRENT_LIST_DIR}/action.sh ${CMAKE_BINARY_DIR} ${CMAKE_SOURCE_DIR})
    set_tests_properties(package_action PROPERTIES LABELS any_processor)
    hone_ctest(package_wheel sh ${CMAKE_CURRENT_LIST_DIR}/wheel.sh ${CMAKE_SOURCE_DIR})
    set_tests_properties(package_wheel PROPERTIES LABELS any_processor)
    set_tests_properties(package_debian PROPERTIES LABELS any_processor COST 90)
  endif()
endif()
