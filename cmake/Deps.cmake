# The third-party libraries, from pkg-config: all of them are hone_deps. A portable folder gets copies of them.
find_package(PkgConfig REQUIRED)
pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET jansson)
pkg_check_modules(PNG REQUIRED IMPORTED_TARGET libpng)
pkg_check_modules(JPEG REQUIRED IMPORTED_TARGET libjpeg)
pkg_check_modules(ZLIB REQUIRED IMPORTED_TARGET zlib)
add_library(hone_deps INTERFACE)
target_link_libraries(hone_deps INTERFACE PkgConfig::JANSSON PkgConfig::PNG PkgConfig::JPEG PkgConfig::ZLIB)
hone_portable_libraries(${JANSSON_LINK_LIBRARIES} ${PNG_LINK_LIBRARIES} ${JPEG_LINK_LIBRARIES} ${ZLIB_LINK_LIBRARIES})
