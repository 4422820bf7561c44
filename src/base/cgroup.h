/* What the container of this process grants: control groups of Linux, version 1 and 2. A group's limit holds
 * for all below it, so the least on the way from the process's group to the root counts. `root` stands before
 * every path: "" but in tests. */
#ifndef HN_BASE_CGROUP_H
#define HN_BASE_CGROUP_H

#include <stdint.h>

/* Processors' worth of time, as 2.5 (docker --cpus, a Kubernetes limit); 0: no limit is known. */
double hn_cgroup_processors(const char *root);
/* Bytes of memory; 0: no limit is known. */
uint64_t hn_cgroup_memory(const char *root);

#endif
