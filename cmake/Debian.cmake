# Debian packages through CPack (tools/deb.sh): libhone0, libhone-dev and hone, each a component of the installation.
set(HONE_MAINTAINER "hone maintainers <hone@example.org>" CACHE STRING "who stands in the Debian packages")
set(HONE_DEBIAN_REVISION 1 CACHE STRING "of the Debian packages")
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_CONTACT ${HONE_MAINTAINER})
set(CPACK_PACKAGE_DIRECTORY ${CMAKE_BINARY_DIR}/packages)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ
  WORLD_EXECUTE)
set(CPACK_COMPONENTS_ALL libhone0 libhone-dev hone)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE ${HONE_DEBIAN_REVISION})
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
# Where Debian has libraries, compressed pages, copyright and changelog.
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_SOURCE_DIR}/cmake/DebianFiles.cmake)
set(CPACK_POST_BUILD_SCRIPTS ${CMAKE_SOURCE_DIR}/cmake/DebianAfter.cmake)
set(CPACK_HONE_SOURCE ${CMAKE_SOURCE_DIR})

# A first line and the paragraph below it.
function(hone_debian_package component section about)
  string(TOUPPER ${component} upper)
  string(JOIN "" text ${ARGN})
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${component} PARENT_SCOPE)
  set(CPACK_DEBIAN_${upper}_PACKAGE_SECTION ${section} PARENT_SCOPE)
  set(CPACK_DEBIAN_${upper}_DESCRIPTION "${about}\n${text}" PARENT_SCOPE)
endfunction()
hone_debian_package(hone science "neural-network inference: profile, explain, speed up, prove"
  "hone takes an ONNX model, finds where the time of inference goes, says why,\n"
  "removes the cause, and proves that the answers are right. It runs networks on\n"
  "x86-64 processors and on NVIDIA GPUs, quantises and tunes them, and reads the\n"
  "profiles of other tools.")
hone_debian_package(libhone0 libs "neural-network inference: shared library"
  "hone loads ONNX models, optimises them and runs them on x86-64 processors and\n"
  "on NVIDIA GPUs.\n.\nThis package holds the library that programs are linked with.")
hone_debian_package(libhone-dev libdevel "neural-network inference: development files"
  "hone loads ONNX models, optimises them and runs them on x86-64 processors and\n"
  "on NVIDIA GPUs.\n.\nThis package holds the headers, and what pkg-config and CMake read.")
# Which package a program that is linked with the library needs; the loader's cache is made anew by a trigger.
set(generated ${CMAKE_BINARY_DIR}/generated)
file(CONFIGURE OUTPUT ${generated}/shlibs CONTENT "libhone 0 libhone0 (>= ${PROJECT_VERSION})\n")
file(CONFIGURE OUTPUT ${generated}/triggers CONTENT "activate-noawait ldconfig\n")
set(CPACK_DEBIAN_LIBHONE0_PACKAGE_CONTROL_EXTRA "${generated}/shlibs;${generated}/triggers")
set(CPACK_DEBIAN_LIBHONE-DEV_PACKAGE_DEPENDS "libhone0 (= ${PROJECT_VERSION}-${HONE_DEBIAN_REVISION})")
# dpkg-shlibdeps sees what programs are linked with, not what they load when it is needed.
set(late_packages)
find_program(DPKG_QUERY dpkg-query)
foreach(file ${HONE_LATE_FILES})
  set(owner)
  if(DPKG_QUERY)
    execute_process(COMMAND ${DPKG_QUERY} -S ${file} OUTPUT_VARIABLE owner ERROR_QUIET)
    if(NOT owner AND file MATCHES "^/usr(/lib/.*)") # of a system whose /lib is /usr/lib
      execute_process(COMMAND ${DPKG_QUERY} -S ${CMAKE_MATCH_1} OUTPUT_VARIABLE owner ERROR_QUIET)
    endif()
  endif()
  if(owner MATCHES "^([^:, ]+)[:,]")
    list(APPEND late_packages ${CMAKE_MATCH_1})
  endif()
endforeach()
list(JOIN late_packages ", " late_packages)
set(CPACK_DEBIAN_HONE_PACKAGE_DEPENDS "${late_packages}")
set(CPACK_DEBIAN_LIBHONE0_PACKAGE_DEPENDS "${late_packages}")
set(CPACK_DEBIAN_HONE_PACKAGE_SUGGESTS "libhone-dev, gcc")
include(CPack)
