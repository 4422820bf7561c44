/* The pools of an engine: who holds how much of its memory, and giving back what nobody holds.
 *
 * Every device of an engine has one pool (the processor's memory; on a GPU its own memory, and pinned memory
 * of the host). Weights, activations, workspaces, blocks of inputs and outputs, and what runs make whose
 * shapes are known late come from it, whichever model or context they belong to; what is freed stays in the
 * pool for the next that asks, so that contexts and models that come and go need nothing of the system or the
 * driver, and runs that were made before take nothing new.
 *
 * Blocks of up to 64 KiB have one of four sizes (classes), larger ones are cut from segments, best fit.
 * Blocks below 4 KiB are aligned to 512 bytes, all others to 4096.
 *
 * A pool gives back what is free: when it would grow beyond the most that it ever held while what it has free
 * is too small, when the system or driver has no more (and then it asks again), when more is free than it may
 * keep, and when it is told to. All functions may be called from any thread, also while contexts run. */
#ifndef HONE_MEMORY_H
#define HONE_MEMORY_H

#include <hone/session.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What memory is for. */
typedef enum hone_memory_purpose {
  HONE_MEMORY_FOR_OTHER = 0,
  HONE_MEMORY_FOR_WEIGHTS,     /* packed weights, constants that steps read */
  HONE_MEMORY_FOR_ACTIVATIONS, /* a context's arena */
  HONE_MEMORY_FOR_WORKSPACE,   /* what steps need while they run */
  HONE_MEMORY_FOR_IO,          /* inputs and outputs on their way to a device and back, bound copies */
  HONE_MEMORY_FOR_LATE,        /* values whose shapes only the run knows */
  HONE_MEMORY_PURPOSES
} hone_memory_purpose;

/* "weights", "activations"...; "?" for what is none. Static. */
HONE_API const char *hone_memory_purpose_name(hone_memory_purpose purpose);

enum { HONE_MEMORY_CLASSES = 5 };

/* Blocks of one size. */
typedef struct hone_memory_class {
  uint64_t block_bytes; /* 1024, 4096, 16384, 65536; 0: larger ones, each as large as it must be */
  uint64_t used_blocks, free_blocks;
  uint64_t used_bytes, free_bytes; /* in blocks */
} hone_memory_class;

/* Who holds memory: a plan with its contexts, under the name of its model. */
typedef struct hone_memory_owner {
  char name[64];        /* "" for what belongs to no model */
  uint64_t blocks;      /* held now */
  uint64_t used;        /* bytes that it asked for and has */
  uint64_t reserved;    /* bytes of the blocks that serve them */
  uint64_t high_water;  /* the most of `used` so far */
  double fragmentation; /* inside of blocks: 1 - used / reserved; 0 when it holds none */
  uint64_t used_for[HONE_MEMORY_PURPOSES];
} hone_memory_owner;

typedef struct hone_memory_pool {
  char name[32];                            /* "host", "cuda:0", "pinned" */
  bool is_host;                             /* memory of the host's process; false: the device's own */
  uint64_t used;                            /* bytes that were asked for and are held now */
  uint64_t reserved;                        /* bytes taken from the system or driver, free ones included */
  uint64_t high_water, reserved_high_water; /* the most of each so far */
  uint64_t free_bytes, largest_free;        /* in blocks that nobody holds: together, the largest */
  double fragmentation;  /* of what is free: 1 - largest_free / free_bytes; 0 when nothing is free */
  uint64_t taken, given; /* calls to the system or driver so far: for memory, and giving it back */
  uint64_t reclaims;     /* how often it gave back what was free */
  hone_memory_class size_class[HONE_MEMORY_CLASSES];
  uint32_t n_owners;
  hone_memory_owner *owner; /* owned; those that hold something first, the largest first */
} hone_memory_pool;

typedef struct hone_memory_stats {
  uint32_t n_pools;
  hone_memory_pool pool[2];
  /* The device's own memory as its driver sees it, other programs included; 0 where it is the host's. */
  uint64_t device_total, device_free;
  uint64_t host_rss, host_rss_peak; /* of the host's process; 0: not read */
} hone_memory_stats;

/* What the engine's pools hold at this moment. Free with hone_memory_stats_free. HONE_ERROR_USAGE for NULL,
 * HONE_ERROR_MEMORY. */
HONE_API hone_status hone_engine_memory(hone_engine *engine, hone_memory_stats *out, hone_error *error);
HONE_API void hone_memory_stats_free(hone_memory_stats *stats); /* NULL is fine */
/* Adds them to the facts, as the table memory_pools; NULL: nothing. */
HONE_API void hone_memory_record(const hone_memory_stats *stats, hone_facts *facts);
/* Gives back what nobody holds; how many bytes that were. 0 for NULL. */
HONE_API uint64_t hone_engine_reclaim(hone_engine *engine);
/* At most so many free bytes are kept in each of the engine's pools from now on (0: none), at once and
 * whenever something is freed. As it is at first: a quarter of the memory that the system had free, on a GPU
 * any amount. HONE_ERROR_USAGE for NULL. */
HONE_API hone_status hone_engine_memory_keep(hone_engine *engine, uint64_t bytes, hone_error *error);
/* The engine that a plan was made for; NULL for NULL. */
HONE_API hone_engine *hone_plan_engine(const hone_plan *plan);

#ifdef __cplusplus
}
#endif
#endif
