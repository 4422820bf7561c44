/* (1x1 convolution +) depthwise convolution (+ 1x1 convolution) in one go over channels-last tensors, so that
 * the tensors between them live in L2 only.
 *
 * A task owns a band of output rows of one image and a range of hidden channels. It walks its rows in groups
 * and its channels in panels (the width of a gemm tile): expands the rows of a panel that the group needs
 * into a ring of rows with the depthwise padding around them, runs the depthwise kernel over them, and when a
 * block of panels is done multiplies it into the output. Large maps have few weights: many groups, all panels
 * in one block. Small maps have many weights: one group, blocks of panels, every weight is read once. When
 * the channels are divided between tasks, each makes a partial sum of the whole output, and a second pass
 * adds them up.
 *
 * With bf16 parts (chain_parts.c) the rows that a group expands are brought into parts first, and each row of
 * the depthwise result as soon as it is there; all panels make one block, and channels are divided with three
 * parts alone.
 *
 * Paired (one part, where the kernels for it exist): the ring holds bf16, two channels in a word, and the
 * depthwise kernel goes from there to the operand of the last convolution. What is half as large stays in L1
 * twice as often, and sums of products never lie in memory. */
#ifndef HN_CPU_CONV_CHAIN_DRIVER_H
#define HN_CPU_CONV_CHAIN_DRIVER_H

#include "backends/cpu/conv/chain_work.h"

void hn_chain_exec(const hn_chain_args *a, uint32_t threads, hn_parallel_fn parallel, void *pool);

#endif
