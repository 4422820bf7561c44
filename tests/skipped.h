/* A test that found nothing here that it could test prints why ("SKIP: ...") and ends with this status, which
 * ctest counts as skipped. One that leaves out a part prints such a line and goes on: `make test` lists all
 * of them at its end. */
#ifndef HN_TESTS_SKIPPED_H
#define HN_TESTS_SKIPPED_H

enum { SKIPPED = 77 };

#endif
