/* HN_ASAN is 1 where ASan watches, 0 elsewhere: gcc and clang each say it in their own way. */
#ifndef HN_BASE_ASAN_H
#define HN_BASE_ASAN_H

#if defined(__SANITIZE_ADDRESS__)
#define HN_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HN_ASAN 1
#endif
#endif
#ifndef HN_ASAN
#define HN_ASAN 0
#endif

#endif
