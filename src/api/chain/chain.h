/* What the files of a chain share: stages, the values between them, and the memory that all have in common.
 *
 * open.c reads the file, run.c runs the stages, model.c is the stage that runs a model, memory.c lends it
 * memory. Everything else between models is a link: a row of links.def and a file in links/. */
#ifndef HN_API_CHAIN_CHAIN_H
#define HN_API_CHAIN_CHAIN_H

#include "api/chain/member.h"
#include "base/arena.h"
#include "base/picture/picture.h"

#include <hone/chain.h>
#include <hone/data.h>
#include <stdatomic.h>

#define HN_NO_STAGE 0xffffffffu

/* What passes between stages. Payloads lie in blocks that are used again when the last reader is done
 * (hn_chain_take); the small arrays in the chain's arena, until the next run. */
typedef struct hn_passed {
  const char *name; /* "boxes", "det.probabilities" */
  hone_chain_kind kind;
  uint32_t stage;  /* that makes it; HN_NO_STAGE: an input */
  uint32_t output; /* of a model: which of its outputs */
  uint32_t last;   /* stage that reads it last; HN_NO_STAGE: nobody does */
  bool shown;      /* an output of the chain: it stays */
  /* Of the run: */
  bool there;
  uint32_t items, n;
  hone_tensor *picture;
  hone_chain_batch *batch;
  hone_chain_box *box;
  hone_chain_answer *answer;
  hone_picture_map *map; /* [items] of tensors that were made of pictures; else NULL */
} hn_passed;

typedef struct hn_stage hn_stage;

/* A kind of link: what it reads, what it makes, what its stage may say. */
typedef struct hn_link {
  const char *name;
  hone_chain_kind makes;
  uint32_t n_reads;
  struct {
    const char *member; /* that names the value */
    hone_chain_kind kind;
  } reads[2];
  const hn_member *members;
  size_t size; /* of its settings */
  const void *defaults;
  /* When the chain is opened and all its stages are known: reads files, finds contradictions. NULL: nothing
   * is to be done. */
  hone_status (*ready)(hone_chain *chain, hn_stage *stage, hone_error *error);
  hone_status (*run)(hone_chain *chain, const hn_stage *stage, const hn_passed *const *in, hn_passed *out,
                     hone_error *error);
} hn_link;

typedef struct hn_chain_model hn_chain_model;

struct hn_stage {
  const char *name;
  hn_json_position place; /* in the file */
  const hn_link *link;    /* NULL: a model */
  void *settings;         /* of a link */
  hn_chain_model *model;
  uint32_t n_reads, *reads; /* values; of a model by its inputs */
  uint32_t n_makes, makes;  /* values from `makes` on */
  hone_chain_time time;
};

typedef struct hn_chain_block hn_chain_block;

struct hone_chain {
  hone_engine *engine;
  hone_chain_options options;
  const char *path; /* for errors */
  hn_arena keep;    /* as long as the chain */
  hn_arena arena;   /* until the next run */
  hn_arena scratch; /* until the stage ends */
  uint32_t n_stages, n_values, n_inputs, n_outputs, n_models;
  hn_stage *stage;
  hn_passed *value; /* inputs first */
  uint32_t *output; /* values */
  /* memory.c */
  void *shared; /* activations and workspace of every plan */
  uint64_t shared_bytes;
  hn_chain_block *block;
  uint32_t n_blocks, cap_blocks;
  uint64_t links_apart;
  /* run.c */
  atomic_bool busy, cancel;
  uint32_t running; /* stage */
  hone_chain_total total;
};

/* ---- links.def */
const hn_link *hn_link_find(const char *name);
const hn_link *hn_link_at(uint32_t i); /* NULL behind the last */

/* ---- open.c */
/* HONE_ERROR_INPUT with the place of the stage in the file. */
hone_status hn_stage_fail(const hone_chain *chain, const hn_stage *stage, hone_status status,
                          hone_error *error, const char *what, ...) __attribute__((format(printf, 5, 6)));
/* What the first model that reads what the stage makes wants of it; NULL: no model does. */
const hone_tensor_desc *hn_stage_wanted(const hone_chain *chain, const hn_stage *stage);

/* ---- memory.c */
/* Memory for `bytes` bytes of a value; 64-byte aligned. It is the chain's again when the value's last reader
 * is done. NULL: there is none. */
void *hn_chain_take(hone_chain *chain, const hn_passed *value, size_t bytes);
void hn_chain_give_back(hone_chain *chain, const hn_passed *value); /* all that it took */
void hn_chain_give_all(hone_chain *chain);
void hn_chain_memory_end(hone_chain *chain);
uint64_t hn_chain_link_bytes(const hone_chain *chain);
/* Contexts of a chain compute in one block. It grows to what a plan needs; contexts that exist are told. */
hone_status hn_chain_context(hone_chain *chain, hone_plan *plan, hone_context **out, hone_error *error);

/* ---- model.c */
/* Reads the model of a stage: members path, precision, shapes, plans. */
hone_status hn_chain_model_open(hone_chain *chain, hn_stage *stage, const hn_reading *r,
                                const hn_json_way *way, hone_error *error);
void hn_chain_model_end(hn_chain_model *model);
uint32_t hn_chain_model_inputs(const hn_chain_model *model);
uint32_t hn_chain_model_outputs(const hn_chain_model *model);
const char *hn_chain_model_input(const hn_chain_model *model, uint32_t i);
const char *hn_chain_model_output(const hn_chain_model *model, uint32_t i);
/* As the model or the stage says it; dimensions may be unknown. */
const hone_tensor_desc *hn_chain_model_in(const hn_chain_model *model, uint32_t i);
const hone_tensor_desc *hn_chain_model_out(const hn_chain_model *model, uint32_t i);
const char *hn_chain_model_path(const hn_chain_model *model);
hone_status hn_chain_model_run(hone_chain *chain, hn_stage *stage, hone_error *error);
/* The block of activations moved. */
hone_status hn_chain_model_moved(hn_chain_model *model, void *shared, hone_error *error);
void hn_chain_model_memory(const hn_chain_model *model, hone_chain_memory *out);
/* Does the model's output `output` end with a reformat step (its input begin with one)? */
bool hn_chain_model_reformats(const hn_chain_model *model, bool output, uint32_t i);
/* Was the output written in place? */
bool hn_chain_model_in_place(const hn_chain_model *model, uint32_t i);

/* ---- what links use */
/* The picture that became pixels of this tensor's item; NULL: none is known. */
static inline const hone_picture_map *hn_passed_map(const hn_passed *v, uint32_t item) {
  return v->map && item < v->items ? &v->map[item] : NULL;
}
/* A new picture of the value, u8[height x width x 3]. */
hone_status hn_chain_picture(hone_chain *chain, const hn_passed *value, hone_tensor *picture, int64_t height,
                             int64_t width, hone_error *error);
/* Arrays of the value in the chain's arena: n elements, zeroed. */
hone_status hn_passed_batches(hone_chain *chain, hn_passed *value, uint32_t n, hone_error *error);
hone_status hn_passed_answers(hone_chain *chain, hn_passed *value, uint32_t n, hone_error *error);
/* Row r of a batch as f32 (converted into scratch where it is another floating-point type); *count: its
 * elements. HONE_ERROR_INPUT names the stage when rows are no items, or no floats. */
hone_status hn_batch_row(hone_chain *chain, const hn_stage *stage, const hone_chain_batch *batch, uint32_t r,
                         const float **row, int64_t *count, hone_error *error);

#endif
