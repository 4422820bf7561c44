/* Saved plans: what was decided and packed, in one file that is mapped and run.
 *
 * Layout, little endian:
 *   head   hn_saved_head, padded to a page
 *   meta   what was decided: see saved_write.c
 *   graph  the optimised graph as an ONNX model, without the bytes of constants that are packed
 *   blob   the packed constants, at a page
 *
 * Loading reads meta and graph, lowers the graph again by the recorded decisions (cost models and tuning have
 * no say), compares every step with the recorded one, and maps the blob: nothing is packed. The blob holds
 * the tactics' own structures, which follow from version, instruction set, threads, cache sizes and what is
 * taken for the bandwidth of memory: all of these must be those of the file. Checksums find damage. They are
 * no defence against a forger: a saved plan is to be trusted like a program, a model is not. */
#ifndef HN_OPTIMIZE_PLAN_SAVED_H
#define HN_OPTIMIZE_PLAN_SAVED_H

#include "optimize/step/choose.h"

#define HN_SAVED_MAGIC "HONEPLAN"
enum { HN_SAVED_FORMAT = 12, HN_SAVED_PAGE = 4096 };

typedef struct hn_saved_head {
  char magic[8];
  uint32_t format, head_bytes;
  uint64_t file_bytes;
  uint64_t meta_at, meta_bytes, graph_at, graph_bytes, blob_at, blob_bytes;
  uint64_t meta_sum, graph_sum, blob_sum;
  char version[32];
  uint32_t isa, threads;
  uint64_t l1, l2, l3;
  uint64_t dram;     /* bytes a second */
  uint64_t head_sum; /* of everything before it */
} hn_saved_head;

/* A step as it was when the plan was saved. */
typedef struct hn_saved_step {
  const hone_tactic_desc *tactic; /* NULL: none */
  uint32_t threads;
  bool tuned;
  double predicted;
  uint64_t what; /* hash of its signature */
  uint64_t blob_offset, blob_bytes;
  uint64_t workspace_bytes; /* what the blob was packed for may use so much */
} hn_saved_step;

struct hn_saved {
  hn_arena arena;
  hn_file file;
  const char *path;
  hn_saved_head head;
  const void *absent; /* stands for the bytes of packed constants */
  size_t absent_bytes;
  hn_model *model;
  const hn_listing *tactics; /* of the backend; held */
  int level;
  hn_precision precision;
  bool prefer_memory;
  hone_chains chains;
  uint32_t fusions_off;
  uint32_t slices;
  const char *source_path; /* of the model that was planned; "" when it had none */
  const char **f32_nodes;
  uint32_t n_f32_nodes;
  hn_decisions decisions;
  hn_saved_step *step;
  uint32_t n_steps;
};

/* True when the file begins like a saved plan. False also when it cannot be read. */
bool hn_saved_is(const char *path);
/* Reads the head alone. */
hone_status hn_saved_peek(const char *path, hn_saved_head *out, hone_error *error);
/* Writes the plan; it must own its model (hn_plan_request.own_model). */
hone_status hn_saved_write(const hn_plan *plan, const char *path, hone_error *error);
void hn_saved_free(hn_saved *saved);
/* A plan from a saved file. */
hone_status hn_saved_open(const char *path, const hn_backend *backend, hn_device *device, hn_plan **out,
                          hone_error *error);

/* Inside of plan/. After lowering: every step as it was, or an error. */
hone_status hn_saved_settle(hn_plan *plan, hone_error *error);
/* After need(): blobs where they were, or an error. */
hone_status hn_saved_attach(hn_plan *plan, hone_error *error);
/* HONE_ERROR_INPUT with the file's name and what to do about it. */
hone_status hn_saved_misfit(const hn_saved *saved, hone_error *error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
uint64_t hn_saved_hash(const char *signature); /* of a step; NULL is fine */

#endif
