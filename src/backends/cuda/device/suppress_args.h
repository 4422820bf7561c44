/* Threads of a block that suppresses boxes (device/suppress.cuh). */
#ifndef HN_SUPPRESS_ARGS_H
#define HN_SUPPRESS_ARGS_H

enum { HN_SUPPRESS_THREADS = 512 };

#endif
