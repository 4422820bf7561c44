/* Memory between pages that nobody may touch. */
#ifndef HONE_CLI_OP_BUFFER_H
#define HONE_CLI_OP_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum op_place {
  OP_AT_END,   /* its end, less what alignment needs, is where the page behind begins */
  OP_AT_START, /* its first byte is the first of a page */
  OP_ODD       /* one element behind that */
} op_place;

typedef struct op_buffer {
  char name[40]; /* "input 0" */
  char *map, *data;
  size_t mapped, bytes;
  uint8_t garbage;
} op_buffer;

/* Filled with garbage that differs with the number. False: no memory. */
bool op_buffer_make(op_buffer *b, const char *name, size_t bytes, size_t align, op_place place,
                    uint8_t garbage);
void op_buffer_free(op_buffer *b);
/* From now on it can only be read. */
void op_buffer_lock(op_buffer *b);
/* From now on nobody may touch it. */
void op_buffer_forbid(op_buffer *b);
/* False: something was written beside it; says where. */
bool op_buffer_sound(const op_buffer *b, char *why, size_t size);
/* What an address that was not to be touched belongs to: "it reads 17 bytes behind input 0" (does:
 * "reads"). From a signal handler. */
bool op_buffer_fault(const void *address, const char *does, char *text, size_t size);

#endif
