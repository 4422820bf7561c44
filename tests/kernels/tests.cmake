# check_kernels: the harness, the measured roofs, and one adapter for every family in families.def.
hone_def_names(families tests/kernels/families.def FAMILY)
list(TRANSFORM families REPLACE "(.+)" "family_\\1.c")
hone_test_tool(check_kernels check_kernels.c check.c roof.c ${families})
target_include_directories(check_kernels PRIVATE ${HONE_TEST_FOLDER})
hone_ctest(check_kernels check_kernels)
