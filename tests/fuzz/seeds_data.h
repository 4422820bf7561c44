#ifndef HONE_TESTS_FUZZ_SEEDS_DATA_H
#define HONE_TESTS_FUZZ_SEEDS_DATA_H

void seeds_data(const char *folder);

#endif
