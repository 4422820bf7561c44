/* What a build watches decides how much of the same is run. What threads share is a driver's, whatever its
 * kernels and its numbers: under TSan the widest tier stands for all. Of a case's layouts sanitizers see the
 * plain one and another in turn: every tactic has several cases. */
#ifndef HN_TESTS_TACTICS_WATCHES_H
#define HN_TESTS_TACTICS_WATCHES_H

#if defined(HN_WATCHES_THREADS)
enum { EVERY_TIER = 0, EVERY_LAYOUT = 0 };
#elif defined(HN_WATCHES_MEMORY)
enum { EVERY_TIER = 1, EVERY_LAYOUT = 0 };
#else
enum { EVERY_TIER = 1, EVERY_LAYOUT = 1 };
#endif

#endif
