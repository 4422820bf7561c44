# cmake -DOUT=commit.h -P Commit.cmake: writes the source's git revision as HONE_COMMIT ("" outside of a checkout), touching the file
# only when it changed.
cmake_minimum_required(VERSION 3.25)
execute_process(COMMAND git describe --always --dirty --abbrev=12 --exclude=* OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE
  ERROR_QUIET RESULT_VARIABLE failed)
if(failed)
  set(commit "")
endif()
# The day of the revision: of man pages.
execute_process(COMMAND git log -1 --format=%cs OUTPUT_VARIABLE date OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
file(CONFIGURE OUTPUT "${OUT}" CONTENT "#define HONE_COMMIT \"@commit@\"\n#define HONE_COMMIT_DATE \"@date@\"\n" @ONLY)
