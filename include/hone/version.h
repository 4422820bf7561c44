/* Version of the hone library. */
#ifndef HONE_VERSION_H
#define HONE_VERSION_H

#define HONE_VERSION_MAJOR 0
#define HONE_VERSION_MINOR 1
#define HONE_VERSION_PATCH 0
#define HONE_VERSION_STRING "0.1.0"

/* Layout version of every descriptor in plugin.h; a descriptor built for another one is refused. */
#define HONE_PLUGIN_ABI 1u

#ifdef __cplusplus
extern "C" {
#endif

/* Symbols that leave libhone.so; everything else is hidden. */
#if defined(__GNUC__)
#define HONE_API __attribute__((visibility("default")))
#else
#define HONE_API
#endif

/* "0.1.0"; static storage. */
HONE_API const char *hone_version(void);

#ifdef __cplusplus
}
#endif
#endif
