/* Makes the n-th call to the system fail: memory, files, threads. The program that links interpose.c defines
 * malloc, open, write, pthread_create ... itself, so calls of hone and of every library that it uses
 * (jansson, SQLite, zlib, libpng, the C library's own malloc) come through here. Between fault_arm and
 * fault_disarm they are counted, one of them is refused, and what is allocated and not freed is known. */
#ifndef HN_TESTS_FAULTS_INTERPOSE_H
#define HN_TESTS_FAULTS_INTERPOSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Kinds of calls and the errno that a refused one sets. */
#define FAULT_KINDS(X)                                                                                       \
  X(MEMORY, "memory", ENOMEM)                                                                                \
  X(MAP, "mmap", ENOMEM)                                                                                     \
  X(THREAD, "thread", EAGAIN)                                                                                \
  X(OPEN, "open", EMFILE)                                                                                    \
  X(READ, "read", EIO)                                                                                       \
  X(STAT, "stat", EIO)                                                                                       \
  X(WRITE, "write", ENOSPC)                                                                                  \
  X(SYNC, "sync", EIO)                                                                                       \
  X(CLOSE, "close", EIO)                                                                                     \
  X(NAME, "name", EIO) /* rename, link, mkdir: what gives a file its name */

typedef enum fault_kind {
#define X(id, word, error) FAULT_##id,
  FAULT_KINDS(X)
#undef X
      FAULT_KIND_COUNT
} fault_kind;

const char *fault_kind_name(fault_kind kind);

typedef enum fault_mode {
  FAULT_RECORD, /* nothing fails; every call's stack is noted */
  FAULT_ONCE,   /* the n-th call fails */
  FAULT_STAYS,  /* and all later ones of its kind: no memory is left, the disk is full */
  FAULT_PARTLY  /* the n-th call, a read or write, does half of what it was asked for, which is no error */
} fault_mode;

/* One call that was met. Two hashes of who called: its nearest frames, and its whole stack. */
typedef struct fault_event {
  uint32_t near, whole;
  uint8_t kind;
} fault_event;

/* jansson's own allocations do not fail. */
void fault_spare_jansson(void);
/* `events`: room for `room` of them when recording, or NULL. */
void fault_arm(uint64_t n, fault_mode mode, fault_event *events, size_t room);
/* Calls that were met since. */
uint64_t fault_disarm(void);
/* The n-th call was reached, and of which kind it was. */
bool fault_reached(fault_kind *kind);
/* Return addresses of the call that failed. */
int fault_stack(void *const **frames);

/* What was allocated or mapped while armed and is still there. */
typedef struct fault_block {
  const void *at;
  size_t size;
  uint32_t whole; /* hash of the stack; 0: allocated before the fault, where no stacks are taken */
  uint64_t event; /* the number of the call that made it */
  void *frame[12];
} fault_block;
size_t fault_blocks(fault_block *out, size_t room);

#endif
