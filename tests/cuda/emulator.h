/* What a device text that gcc has built and the fake driver share. The text's threads are fibers of the
 * library (fibers.c); what threads do together (collectives.c) is called through this table, so that the
 * module needs no symbol of the library. Included by emulated.cuh: nothing but C. */
#ifndef HN_TESTS_CUDA_EMULATOR_H
#define HN_TESTS_CUDA_EMULATOR_H

/* What stands for a text that was recorded and not compiled: any kernel is in it, and does nothing. */
#define HN_EMU_STUB "hone: a text that was recorded, not compiled; padded to an ELF header's size"

typedef struct hn_emu_dim {
  unsigned x, y, z;
} hn_emu_dim;

typedef struct hn_emu_thread { /* head of the library's own */
  hn_emu_dim index;
  unsigned lane;
} hn_emu_thread;

typedef struct hn_emu_block {
  hn_emu_dim index, size, grid;
  unsigned char *dynamic; /* shared memory, 1024-byte aligned */
} hn_emu_block;

/* Sums are f32; of codes (a: u8 or i8, b: i8) they are i32. */
typedef enum hn_emu_mma { HN_EMU_F16, HN_EMU_BF16, HN_EMU_TF32, HN_EMU_U8, HN_EMU_I8 } hn_emu_mma;

typedef struct hn_emu_api {
  void (*sync)(hn_emu_thread *t, int line);
  void (*sync_warp)(hn_emu_thread *t);
  unsigned (*shuffle)(hn_emu_thread *t, unsigned x, unsigned lane);
  unsigned (*ballot)(hn_emu_thread *t, int predicate);
  void (*ldmatrix)(hn_emu_thread *t, unsigned *r, const void *row, int matrices, int transposed);
  void (*mma)(hn_emu_thread *t, hn_emu_mma kind, void *d, const unsigned *a, const unsigned *b);
  void (*cp_async)(hn_emu_thread *t, void *to, const void *from, unsigned size, unsigned bytes);
  void (*cp_commit)(hn_emu_thread *t);
  void (*cp_wait)(hn_emu_thread *t, unsigned pending);
  void (*fault)(hn_emu_thread *t, const char *what);
  unsigned (*shared_address)(hn_emu_thread *t, const void *p);
  void (*cluster_sync)(hn_emu_thread *t);
  void *(*cluster_at)(hn_emu_thread *t, const void *p, unsigned rank);
} hn_emu_api;

typedef struct hn_emu_entry { /* symbol hn_entry_NAME */
  const char *name;
  void (*call)(const void *args);
  unsigned size, alignment; /* of args */
  unsigned max_threads;
} hn_emu_entry;

typedef struct hn_emu_module { /* symbol hn_emu_text */
  const hn_emu_api **api;
  hn_emu_thread **now;
  hn_emu_block *block;
  unsigned char *shared, *shared_end; /* static shared memory */
} hn_emu_module;

#endif
