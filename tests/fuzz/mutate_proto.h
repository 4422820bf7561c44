/* A custom mutator that knows protobuf's wire format: it changes whole fields and keeps the lengths around them right, so
 * that mutants get past the first check. */
#ifndef TESTS_FUZZ_MUTATE_PROTO_H
#define TESTS_FUZZ_MUTATE_PROTO_H

#include <stddef.h>
#include <stdint.h>

/* Mutates data[0..size) in place; returns the new size (<= max_size). */
size_t mutate_proto(uint8_t *data, size_t size, size_t max_size, unsigned seed);

#endif
