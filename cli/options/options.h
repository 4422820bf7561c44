/* Options: one table a command drives parsing and help. */
#ifndef HONE_CLI_OPTIONS_H
#define HONE_CLI_OPTIONS_H

#include <hone/hone.h>
#include <stdio.h>

typedef enum cli_kind {
  CLI_FLAG,    /* bool */
  CLI_COUNT,   /* int64_t, 0 or more */
  CLI_SOME,    /* int64_t, 1 or more */
  CLI_LEVEL,   /* int64_t, 0..3 */
  CLI_THREADS, /* int64_t, 1..HONE_MAX_THREADS */
  CLI_NUMBER,  /* double, 0 or more */
  CLI_TEXT,    /* const char * */
  CLI_LIST     /* cli_list: may be given again */
} cli_kind;

typedef struct cli_list {
  const char **item;
  size_t n;
} cli_list;

typedef struct cli_option {
  char letter;      /* 0: none */
  const char *name; /* NULL ends the table */
  cli_kind kind;
  size_t field;      /* offset in cli_args */
  const char *value; /* what help calls it */
  const char *help;
} cli_option;

/* All options of all commands; a command sees those in its table. */
typedef struct cli_args {
  bool all, layers; /* verify */
  bool dynamic;     /* plan --shapes */
  bool help, json, verbose, explain, verify_passes, open_batch, again, no_cache, check, counters;
  int64_t threads, batch, slices, level, runs, warmup, seed, count, size, rows, round, tune_steps;
  double max_seconds, width, tolerance, budget, tune_seconds, effect;
  const char *format, *device, *precision, *prefer, *output, *output_dir, *labels, *filter, *csv, *trace,
      *html, *passes, *cache, *model, *profile;
  const char *lang;
  bool list_thresholds;
  bool reload;           /* the input files, before every run */
  bool show_memory;      /* chain */
  bool memory;           /* of run: who holds it */
  bool no_peak;          /* set by run: nobody asks how much memory there was at most */
  bool plan_only;        /* set by plan: nothing is run, so there are neither inputs nor a context */
  double quiet_wait;     /* seconds */
  double share, speedup; /* of hone amdahl */
  /* history, gate, long runs */
  bool save, plot;
  const char *tag, *commit, *remove, *baseline, *baseline_cmd, *candidate_cmd, *markdown, *junit, *duration,
      *metric;
  double worse_pct;
  int64_t pairs;
  /* quantize */
  bool symmetric, asymmetric, equalize, bias_correction, narrow_io, untimed;
  double percentile;
  double max_drop; /* -1: not given */
  const char *calib, *to, *method, *target, *ranges;
  cli_list skip, only;
  cli_list dump;     /* verify: nodes */
  cli_list profiles; /* plan: sizes of dimensions */
  /* how pictures become inputs */
  bool bgr, letterbox;
  const char *mean, *deviation, *scale, *resize, *crop, *pixels;
  int64_t pad;
  /* how inputs arrive */
  bool pinned, pageable;
  const char *input_type, *input_layout;
  const hone_preprocess *arriving; /* pipeline: of its description and the options; NULL: of the options */
  int64_t at_case;                 /* op test; -1: all */
  /* eval */
  int64_t max_samples;
  /* load scenarios */
  const char *scenario, *latency_bound, *min_duration, *load_seeds;
  double qps;
  int64_t min_queries, in_flight, streams, curve, samples, query_samples;
  /* serve */
  const char *listen, *batch_delay;
  int64_t max_batch, waiting, connections, sequences, context;
  double max_body, cache_size;
  bool no_generate;
  /* pipeline */
  const char *source, *pipeline, *post, *workers; /* items; its description; chain; of the stages */
  int64_t top;
  const char *names, *against;   /* of classes; the model that is compared with */
  const char *boxes, *box_order; /* how outputs tell them */
  bool relative, background;
  double min_score, nms_iou;
  cli_list data;
  cli_list shapes, inputs, thresholds, float_files;
  bool with_boxes;              /* zoo */
  bool general, c_only;         /* op new, op build */
  const char *from, *nodes;     /* op new */
  cli_list op_path, op_disable; /* of every command */
  cli_list rest;                /* arguments that are no options */
} cli_args;

/* What the options are before any is given. */
#define CLI_UNSET                                                                                            \
  {                                                                                                          \
    .share = -1, .level = -1, .runs = -1, .warmup = -1, .budget = -1, .max_drop = -1, .worse_pct = -1,       \
    .pairs = -1, .pad = -1, .at_case = -1                                                                    \
  }
#define CLI_FIELD(name) offsetof(cli_args, name)
#define CLI_END                                                                                              \
  { 0, NULL, CLI_FLAG, 0, NULL, NULL }
#define CLI_OPT_HELP                                                                                         \
  { 'h', "help", CLI_FLAG, CLI_FIELD(help), NULL, "show this help" }
#define CLI_OPT_JSON                                                                                         \
  { 0, "json", CLI_FLAG, CLI_FIELD(json), NULL, "print one JSON document instead of text" }
#define CLI_OPT_VERBOSE                                                                                      \
  { 'v', "verbose", CLI_FLAG, CLI_FIELD(verbose), NULL, "say more on standard error" }
/* Options of everything that loads a model and fixes its shapes. */
#define CLI_OPT_SHAPES                                                                                       \
  {'b', "batch", CLI_SOME, CLI_FIELD(batch), "N", "batch size where the model leaves it open (1)"}, {        \
    0, "shape", CLI_LIST, CLI_FIELD(shapes), "NAME=DIMS",                                                    \
        "shape of an input (x=1x3x224x224) or value of a symbol (N=4)"                                       \
  }
#define CLI_OPT_PRECISION                                                                                    \
  {0,                                                                                                        \
   "precision",                                                                                              \
   CLI_TEXT,                                                                                                 \
   CLI_FIELD(precision),                                                                                     \
   "f32|bf16|fp16|tf32|fp8|auto",                                                                            \
   "arithmetic of matrix products (f32); tf32, fp8: --device cuda; auto: bf16, there fp16, where the "       \
   "budget allows"},                                                                                         \
  {                                                                                                          \
    0, "budget", CLI_NUMBER, CLI_FIELD(budget), "X",                                                         \
        "largest error of --precision auto, relative to an output's range (0.01; fp16: 0.002)"               \
  }
#define CLI_OPT_PREFER                                                                                       \
  {                                                                                                          \
    0, "prefer", CLI_TEXT, CLI_FIELD(prefer), "speed|memory",                                                \
        "which tactics: fastest, or least weights (speed)"                                                   \
  }
#define CLI_OPT_SLICES                                                                                       \
  {                                                                                                          \
    0, "slices", CLI_SOME, CLI_FIELD(slices), "N",                                                           \
        "slices of the batch that the CPU takes one after the other; 1: all at once (as predicted fastest)"  \
  }
#define CLI_OPT_PASSES                                                                                       \
  {                                                                                                          \
    0, "passes", CLI_TEXT, CLI_FIELD(passes), "GLOBS",                                                       \
        "graph passes and fusions to use, comma-separated; -GLOB leaves out (all); hone help passes"         \
  }
/* Options of everything that also runs it. */
#define CLI_OPT_RUN                                                                                          \
  {'t', "threads", CLI_THREADS, CLI_FIELD(threads), "N", "threads (all processors)"}, CLI_OPT_SHAPES,        \
      {0, "level", CLI_LEVEL, CLI_FIELD(level), "0..3", "optimisation level (2)"}, CLI_OPT_PRECISION,        \
      CLI_OPT_PREFER, CLI_OPT_SLICES,                                                                        \
      {0, "device", CLI_TEXT, CLI_FIELD(device), "cpu|cuda", "where to run: cpu, cuda or cuda:N (cpu)"},     \
      {0, "no-cache", CLI_FLAG, CLI_FIELD(no_cache), NULL, "ignore what hone tune has measured"},            \
      {0, "seed", CLI_COUNT, CLI_FIELD(seed), "N", "seed of random inputs (1)"}, {                           \
    0, "max-seconds", CLI_NUMBER, CLI_FIELD(max_seconds), "S", "give up (exit 6) after this long"            \
  }
/* Of everything that reads pictures. */
#define CLI_OPT_PREPROCESS                                                                                   \
  {0, "scale", CLI_TEXT, CLI_FIELD(scale), "X", "pictures: every byte times X, such as 1/255 (1/255)"},      \
      {0, "mean", CLI_TEXT, CLI_FIELD(mean), "M|R,G,B", "less this, then (ImageNet's; 0 with --scale)"},     \
      {0,         "std",                                                                                     \
       CLI_TEXT,  CLI_FIELD(deviation),                                                                      \
       "S|R,G,B", "divided by this (ImageNet's; 1 with --scale or --mean)"},                                 \
      {0, "bgr", CLI_FLAG, CLI_FIELD(bgr), NULL, "channels blue, green, red"},                               \
      {0, "resize", CLI_TEXT, CLI_FIELD(resize), "N|HxW", "first to this size; N: the shorter side"},        \
      {0, "crop", CLI_TEXT, CLI_FIELD(crop), "N|HxW", "then the centre of this size"},                       \
      {0,        "letterbox",                                                                                \
       CLI_FLAG, CLI_FIELD(letterbox),                                                                       \
       NULL,     "then to the input's size with bars around it (stretched)"},                                \
      {0, "pad", CLI_COUNT, CLI_FIELD(pad), "N", "brightness of the bars, 0 to 255 (114)"}, {                \
    0, "layout", CLI_TEXT, CLI_FIELD(pixels), "nchw|nhwc", "of the input for pictures (by its dimensions)"   \
  }
/* Of everything that measures. */
#define CLI_OPT_QUIET                                                                                        \
  {                                                                                                          \
    0, "quiet-wait", CLI_NUMBER, CLI_FIELD(quiet_wait), "S",                                                 \
        "first wait up to S seconds until other processes leave the processors alone"                        \
  }
#define CLI_OPT_LANG                                                                                         \
  { 0, "lang", CLI_TEXT, CLI_FIELD(lang), "en|zh", "language of findings and reports (LANG)" }
/* Options of everything that explains. */
#define CLI_OPT_FINDINGS                                                                                     \
  {0, "threshold", CLI_LIST, CLI_FIELD(thresholds), "NAME=X", "override one (diagnose --thresholds lists)"}, \
      CLI_OPT_LANG
typedef struct cli_command {
  const char *name, *arguments, *summary;
  const char *details; /* a paragraph for the help; NULL */
  const cli_option *options;
  size_t min_rest, max_rest;
  int (*run)(const cli_args *args); /* the exit code */
} cli_command;

extern const cli_option cli_everywhere[];       /* options of every command */
extern const cli_command *const cli_commands[]; /* ends with NULL */
extern const cli_command cli_cmd_op;
extern const cli_command *const cli_op_verbs[]; /* "op new" and so on; ends with NULL */
/* The verb of `hone op` among its words, and where it stands; NULL: none stands there, or (*at >= 0) one that
 * is not known. */
const cli_command *cli_op_verb(int argc, char **argv, int *at);
/* Parses argv by the table. Prints one line and returns 2 when it is wrong, else 0. Free with cli_args_free.
 */
/* False: no memory. The text is borrowed. */
bool cli_list_add(cli_list *list, const char *text);
int cli_parse(const cli_command *command, int argc, char **argv, cli_args *args);
void cli_args_free(cli_args *args);
void cli_print_help(const cli_command *command);
void cli_print_overview(FILE *out);
/* The error of "hone --lang zh inspect MODEL". */
int cli_options_first(const cli_command *meant);
const cli_command *cli_find(const char *name);
/* The candidate that is likely to be meant, or NULL. */
const char *cli_nearest(const char *word, const char *const *candidates, size_t n);
const char *cli_nearest_command(const char *word);
const char *cli_device_name(const cli_args *args);

/* Options of everything that reads them. */
#define CLI_OPT_IMPORT                                                                                       \
  {0, "format", CLI_TEXT, CLI_FIELD(format), "NAME", "what wrote the files (found out from them)"}, {        \
    0, "model", CLI_TEXT, CLI_FIELD(model), "NAME", "what to call the model, also in commands"               \
  }
/* Findings may compare with the network in float. */
#define CLI_OPT_FLOAT                                                                                        \
  {                                                                                                          \
    0, "float", CLI_LIST, CLI_FIELD(float_files), "FILE",                                                    \
        "profile of the same network in float: does INT8 pay?"                                               \
  }

#endif
