/* Structure-aware mutation of ONNX files: a file is read into a tree of fields along schema.h, the tree is
 * changed, and written again with all lengths right. What does not parse is left to libFuzzer's own
 * mutations. */
#ifndef TESTS_FUZZ_MUTATE_H
#define TESTS_FUZZ_MUTATE_H

#include "model/onnx/schema.h"

/* Both return the new size, at most max. root: the message that the file holds. */
size_t mutate_file(uint8_t *data, size_t size, size_t max, unsigned seed, hn_pb_message_id root);
/* Copies a part of one file into the other. */
size_t cross_files(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size, uint8_t *out, size_t max,
                   unsigned seed, hn_pb_message_id root);

/* libFuzzer's. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max);

#endif
