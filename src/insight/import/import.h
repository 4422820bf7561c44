/* What an importer is. It reads the files of one run of one tool and fills facts; opening, unpacking, telling
 * formats apart and joining files are done for it. Shared tools: source.h (bytes), json_stream.h, csv.h,
 * text.h (numbers, times, units, types, shapes), and the helpers below. */
#ifndef HN_INSIGHT_IMPORT_H
#define HN_INSIGHT_IMPORT_H

#include "base/arena.h"
#include "base/map.h"
#include "base/registry.h"
#include "base/str.h"
#include "insight/import/read/csv.h"
#include "insight/import/read/json_stream.h"
#include "insight/import/read/source.h"
#include "insight/import/read/text.h"

#include <hone/import.h>

/* The beginning of a file, for telling formats apart. */
typedef struct hn_sniff {
  const char *file;    /* its name without folders, in lower case */
  const uint8_t *data; /* the first bytes, unpacked; also ended by a zero that does not count */
  size_t size;         /* 65536 at most */
} hn_sniff;

/* Does the text occur in the first bytes? */
bool hn_sniff_has(const hn_sniff *s, const char *text);
/* The first byte that is no blank; 0: there is none. */
char hn_sniff_first(const hn_sniff *s);

/* One run that is being imported. */
typedef struct hn_import {
  hone_facts *facts;    /* to be filled */
  hone_facts_meta meta; /* put into the facts after finish; texts may point into the arena or be static */
  hn_arena arena;       /* lives until the import ends */
  hn_map steps;         /* name -> index + 1, see hn_import_step */
  hn_map labels;        /* name -> how often hn_import_label has met it */
  void *state;          /* the importer's own, `state_size` zeroed bytes */
  const hone_import_options *options; /* never NULL */
  bool complete;                      /* the importer has set the facts' metadata itself */
} hn_import;

struct hn_importer {
  hone_import_format
      format; /* name: for --format and meta.tool; about: the tool and the files that are read */
  size_t state_size;
  /* How sure it is that the file is its own: 0 (no) to 100. By content first, by name second. */
  int (*sniff)(const hn_sniff *sniff);
  /* One of the two. read: takes the bytes as they come. open: reads the file itself, by its path (databases).
   * Called once a file; the importer tells by content which part of the run it is. */
  hone_status (*read)(hn_import *in, hn_source *source, hone_error *error);
  hone_status (*open)(hn_import *in, const char *path, hone_error *error);
  /* All files are read: joins them and completes the facts. May be NULL. */
  hone_status (*finish)(hn_import *in, hone_error *error);
  void (*destroy)(void *state); /* frees what the state owns beside the arena; may be NULL */
};
/* Of struct hn_importer, by the format's name. Begins with importers.def. */
extern hn_registry hn_importers;

/* ---- helpers */

/* Index of the step of this name (added as *step when it is new; NULL: with the name alone), -1 when out of
 * memory. The name must not be NULL. */
int32_t hn_import_step(hn_import *in, const char *name, const hone_step_fact *step);

/* A name for a step that no other has: the name itself the first time, then "name #2" ... NULL when out of
 * memory. */
const char *hn_import_label(hn_import *in, const char *name);

/* A copy in the arena; NULL for NULL or when out of memory. */
const char *hn_import_text(hn_import *in, const char *text);
/* The same, printed. */
const char *hn_import_say(hn_import *in, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Input and output channels of a convolution or matrix product, and its FLOPs, from shapes as ONNX and its
 * descendants order them (N, C, spatial...; weights M, C/group, kernel...). Anything not known is 0 (or -1
 * for a dimension). FLOPs count two a multiply-add. */
typedef struct hn_conv_shape {
  const int64_t *in, *weight, *out;
  size_t in_rank, weight_rank, out_rank;
} hn_conv_shape;
void hn_import_conv(const hn_conv_shape *shape, hone_step_fact *step);

#endif
