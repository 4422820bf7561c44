/* Random networks, healthy or with one bad habit of their own. Sites, sizes and strengths come from the lab's
 * random numbers. */
#ifndef TESTS_ADVICE_NETWORKS_H
#define TESTS_ADVICE_NETWORKS_H

#include "advice/lab.h"

#include <hone/model.h>

typedef hone_model *network_maker(lab *chance, char *label, size_t size);

/* One of the built-in image networks at a random width and size; or any of the built-in ones. */
network_maker network_of_zoo, network_any;
/* Random blocks of convolutions (plain, bottleneck, inverted residual)... */
network_maker network_unfusable; /* whose results are read twice, so that what follows cannot join them */
network_maker network_tiny;      /* so narrow and small that starting them is most of the work */
network_maker network_ping_pong; /* mixed along another axis, with a Transpose there and back */
network_maker network_memory;    /* between which rows of a large tensor are added up and normalised */
network_maker network_replanned; /* behind a crop whose size comes from the data */

#endif
