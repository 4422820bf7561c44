/* Chains: several models in one session, and what lies between them.
 *
 * A chain is a JSON file of stages (docs/guide/chains.md). A stage is a model, or a link: boxes out of a map
 * of probabilities, crops of a picture, a decoder. It makes values, which later stages read by their names.
 * A model reads another one's output where that lies, without a copy, and as models run one after the other,
 * one block of memory serves the activations of all.
 *
 *   hone_chain_open(engine, "chain.json", NULL, &chain, &error);
 *   hone_chain_run_files(chain, (const char *const[]){"page.jpg"}, 1, &error);
 *   hone_chain_output(chain, 0, &value);       value.answer[0].text
 *
 * One thread at a time runs a chain (HONE_ERROR_USAGE for a second one); several chains of one engine may run
 * at the same time. Calls with NULL where an object or a result belongs are HONE_ERROR_USAGE; getters give 0,
 * false or NULL. */
#ifndef HONE_CHAIN_H
#define HONE_CHAIN_H

#include <hone/session.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hone_chain hone_chain;

typedef struct hone_chain_options {
  const char *precision; /* of models whose stage says nothing; as in hone_plan_options */
  bool untuned;          /* as in hone_plan_options */
} hone_chain_options;

/* Reads the file and the models that it names (paths are relative to its folder). Nothing is planned before
 * the first run: shapes come from the inputs. HONE_ERROR_INPUT names file, line and column. The engine must
 * outlive the chain. options may be NULL. */
HONE_API hone_status hone_chain_open(hone_engine *engine, const char *path, const hone_chain_options *options,
                                     hone_chain **out, hone_error *error);
/* The same from memory; folder: what paths in it are relative to, NULL: the current one. */
HONE_API hone_status hone_chain_parse(hone_engine *engine, const char *text, size_t size, const char *folder,
                                      const hone_chain_options *options, hone_chain **out, hone_error *error);
HONE_API void hone_chain_destroy(hone_chain *chain);

/* ---- what it is made of */

typedef enum hone_chain_kind {
  HONE_CHAIN_PICTURES = 0, /* 8-bit RGB: u8[height x width x 3] each */
  HONE_CHAIN_TENSORS,      /* batches: rows of dimension 0 are items */
  HONE_CHAIN_BOXES,
  HONE_CHAIN_ANSWERS /* texts or classes */
} hone_chain_kind;

/* "pictures", "tensors", "boxes", "answers". Static storage. */
HONE_API const char *hone_chain_kind_name(hone_chain_kind kind);

/* Counts, and of each the name and kind. Names live as long as the chain. */
HONE_API uint32_t hone_chain_inputs(const hone_chain *chain);
HONE_API const char *hone_chain_input_name(const hone_chain *chain, uint32_t i);
HONE_API hone_chain_kind hone_chain_input_kind(const hone_chain *chain, uint32_t i); /* pictures or tensors */
HONE_API uint32_t hone_chain_outputs(const hone_chain *chain);
HONE_API const char *hone_chain_output_name(const hone_chain *chain, uint32_t i);

typedef struct hone_chain_stage {
  const char *name, *kind; /* kind: "model", or the link's */
  const char *path;        /* of the model; NULL */
} hone_chain_stage;

/* Stages in the order of the file; texts live as long as the chain. false: there is no stage i. */
HONE_API uint32_t hone_chain_stages(const hone_chain *chain);
HONE_API bool hone_chain_stage_at(const hone_chain *chain, uint32_t i, hone_chain_stage *out);

/* ---- running */

/* in[i] belongs to input i: a picture as u8[height x width x 3], RGB; a tensor as its model wants it, row-
 * major. Borrowed during the call. A model gets a plan for the shapes that come to it; each stage keeps as
 * many as its "plans" say and lets go of the one that was not used for the longest time. */
HONE_API hone_status hone_chain_run(hone_chain *chain, const hone_tensor *const *in, hone_error *error);
/* The same from files: a picture for an input of pictures, otherwise what hone_data_load takes. n: as many as
 * there are inputs. */
HONE_API hone_status hone_chain_run_files(hone_chain *chain, const char *const *paths, uint32_t n,
                                          hone_error *error);
/* From any thread: the run in progress (or the next one) ends before its next stage or the next run of a
 * model, with HONE_ERROR_CANCELLED. */
HONE_API void hone_chain_cancel(hone_chain *chain);

/* ---- results: of the last run that was HONE_OK, valid until the next run begins */

/* A quadrangle in pixels of its picture, from the left and top edge; corners clockwise from the top left one
 * as the text or thing stands. */
typedef struct hone_chain_box {
  float x[4], y[4];
  float score;
  uint32_t item; /* picture that it is in */
} hone_chain_box;

typedef struct hone_chain_answer {
  const char *text; /* decoded text, or the label of the class; NULL: there are no labels */
  int64_t class_id; /* -1 for texts */
  float score;      /* as the model gives it; of texts the mean over characters, 0 for an empty one */
  uint32_t item;    /* crop or row that it is about */
} hone_chain_answer;

/* Rows of one batch. */
typedef struct hone_chain_batch {
  hone_tensor tensor;
  const uint32_t *item; /* [n] which item row i is */
  uint32_t n;
} hone_chain_batch;

typedef struct hone_chain_value {
  hone_chain_kind kind;
  uint32_t items; /* pictures, rows, boxes; answers are about so many items */
  uint32_t n;     /* elements of what follows: */
  const hone_tensor *picture;
  const hone_chain_batch *batch;
  const hone_chain_box *box;
  const hone_chain_answer *answer;
} hone_chain_value;

/* Output i of the last run; false: there is none. */
HONE_API bool hone_chain_output(const hone_chain *chain, uint32_t i, hone_chain_value *out);
/* Any value by its name ("boxes", "det.probabilities"); the memory of one that later stages only read, and is
 * no output, may have been used again by now: then false. */
HONE_API bool hone_chain_value_of(const hone_chain *chain, const char *name, hone_chain_value *out);

/* ---- where the time went */

typedef struct hone_chain_time {
  double seconds;      /* of the stage in the last run, by stamps at its edges; planning is not in it */
  double plan_seconds; /* plans that were made in it */
  uint32_t runs;       /* of the model; 1 for a link */
  uint32_t items;      /* that it made */
} hone_chain_time;

/* false: there is no such stage. */
HONE_API bool hone_chain_time_of(const hone_chain *chain, uint32_t stage, hone_chain_time *out);

/* T_total = reading + stages + planning + idle + residual. Nothing in it is computed from the rest: idle is
 * what lies between the stamps of one stage and the next, residual what another clock around the whole call
 * saw beyond. */
typedef struct hone_chain_total {
  double wall_s;
  double read_s; /* files: reading and decoding */
  double stages_s, plan_s, idle_s, residual_s;
} hone_chain_total;

/* Of the last run, all stages together. */
HONE_API bool hone_chain_total_of(const hone_chain *chain, hone_chain_total *out);

/* ---- where the memory is */

/* Of one stage that is a model. Bytes; 0 before it ran. */
typedef struct hone_chain_memory {
  uint32_t stage, plans;
  uint64_t constants; /* weights, packed and unpacked, of all its plans */
  uint64_t arena;     /* activations and workspace of its largest plan */
  uint64_t apart;     /* the same summed over its plans: what contexts of their own would take */
} hone_chain_memory;

/* model: from 0, those stages alone that are models. */
HONE_API uint32_t hone_chain_models(const hone_chain *chain);
HONE_API bool hone_chain_memory_of(const hone_chain *chain, uint32_t model, hone_chain_memory *out);

typedef struct hone_chain_memory_total {
  uint64_t constants;
  uint64_t apart;       /* activations and workspaces, had each plan its own */
  uint64_t shared;      /* the block that serves all */
  uint64_t links_apart; /* values between stages, had each its own: of the last run */
  uint64_t links;       /* blocks that they were in */
} hone_chain_memory_total;

/* Of all models, and of the values between them. */
HONE_API bool hone_chain_memory_sum(const hone_chain *chain, hone_chain_memory_total *out);

/* How a value comes from a model to one that reads it, as the last run did it. */
typedef struct hone_chain_link {
  const char *from;       /* value: "det.y" */
  const char *to, *input; /* stage, and its model's input */
  uint64_t bytes;
  /* The maker's last step wrote where the reader reads. false: the output was a view or a constant, or is
   * another device's, and was copied. */
  bool bound;
  /* The maker computes in another order of elements (channels-last) and had to bring it back; the reader the
   * other way. Both are steps of the plans, and in their time. */
  bool reformat_out, reformat_in;
  bool channels_last; /* both compute so, and it stays so between them: neither is needed */
} hone_chain_link;

/* Texts live as long as the chain. false: there is no link i. */
HONE_API uint32_t hone_chain_links(const hone_chain *chain);
HONE_API bool hone_chain_link_of(const hone_chain *chain, uint32_t i, hone_chain_link *out);

#ifdef __cplusplus
}
#endif
#endif
